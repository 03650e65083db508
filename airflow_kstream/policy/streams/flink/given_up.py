"""The files that a running Flink job left open and will not touch again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from airflow_kstream.model.streams.flink_job import FlinkCheckpoints

# The JobManager's clock tells restarts, and the NameNode's when a file was looked at: Kerberos lets them differ.
CLOCKS = timedelta(minutes=5)
# The first checkpoint after a restart may still be of what was in flight before it.
_SINCE = 2


def given_up_before(seen: FlinkCheckpoints, retained: Collection[int], *, others: bool) -> datetime | None:
    """Return the moment before which a file had to stop growing for the job to have given it up, None if none has been.

    A restart inside Flink goes on with the files that its checkpoint names, and forgets all others. So the job must
    have completed two checkpoints since then, and none that is `retained`, by its number, may be older: a start from
    such a one would want the file as it was. `others` is whether older checkpoints or savepoints lie elsewhere.

    A file's writer may also be the job itself, which resumed it and has nothing to write, or whose tasks in another
    region of its graph went on: then the close costs it a restart, and no row, because a checkpoint names the length up
    to which a file counts.
    """
    resumed = seen.resumed_from
    if resumed is None or others or not retained or min(retained) <= resumed.number:
        return None
    return resumed.at - CLOCKS if seen.completed_since_restart >= _SINCE else None
