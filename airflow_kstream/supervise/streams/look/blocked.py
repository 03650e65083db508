"""What keeps a restart from being done, in the stream's folder: for people who look from elsewhere than its task.

Nothing is decided by it. It is written again at each try, and concerns its generation alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.contract import blocked_marker, stop_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Blocked, Obstacle, Step, Stop
from airflow_kstream.model.versioned import read, write
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import VERSION
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

# Tries lie up to 15 minutes apart: after more than this it is another event.
_ONE_EVENT = timedelta(hours=1)


def note_blocked(folder: StreamFolder, generation: int, names: frozenset[str], now: datetime, why: str) -> None:
    """Write why this generation can't be followed now, and since when. `now` is by the NameNode's clock.

    Raises KstreamError: when it can't be written.
    """
    before = blocked_restart(folder, generation, names)
    marker = blocked_marker(generation)
    lasts = before and before.since and _is_tried(folder, generation, now)
    since = before.since if before and before.since and lasts else now
    folder.put(marker, write(VERSION, {"since": since.isoformat(), "why": why}))


def blocked_now(
    session: ClusterSession, step: Step, observation: Observation, now: datetime, *, stalled: bool = False
) -> Blocked | None:
    """Read the last refusal of the restart that is due; None if none is, or it was begun, or none was refused.

    Nor of one that nobody has tried for long: what stands in its way is then that nobody tries. `now` is by the
    NameNode's clock. A restart is due as well when the stream is `stalled` and its rules allow one.
    """
    begun = stop_marker(observation.generation) in observation.files
    if not (isinstance(step, Stop) or stalled) or begun or observation.desired.state is not DesiredState.RUNNING:
        return None
    folder = StreamFolder(session, observation.stream)
    noted = blocked_restart(folder, observation.generation, observation.files)
    return noted if noted and _is_tried(folder, observation.generation, now) else None


def _is_tried(folder: StreamFolder, generation: int, now: datetime) -> bool:
    try:
        return now - folder.written_at(blocked_marker(generation)) < _ONE_EVENT
    except KstreamError:
        return True


def blocked_restart(folder: StreamFolder, generation: int, names: frozenset[str]) -> Blocked | None:
    """Read the last refusal; None if there is none, or it can't be read."""
    marker = blocked_marker(generation)
    if marker not in names:
        return None
    try:
        fields = read(folder.text(marker), VERSION)
        return Blocked(Obstacle.PREFLIGHT, datetime.fromisoformat(fields["since"]), str(fields["why"]))
    except (KstreamError, ValueError, KeyError, TypeError):
        return None
