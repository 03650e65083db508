"""With which tokens a Flink job's new TaskManagers start: those of its launch, or those that its keeper confirms.

Flink equips each new container from the JobManager's token file, which it never rewrites (Utils of flink-yarn). The
keeper in our jar rewrites it, and confirms in `kept-<n>` what it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN
from airflow_kstream.model.streams.flink_contract import DEFAULT_CONFIRM, Kept, kept_file, read_kept
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.horizon import WorkerTokens
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.supervise.streams.flink.flink_progress import HERE, SERVES, JobMemory
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession

_WORKER = "TaskManager"


def flink_worker_tokens(
    session: ClusterSession, newest: Newest, names: Collection[str], memory: JobMemory = HERE
) -> WorkerTokens | None:
    """Return what the engine's `worker_tokens` promises. A keeper's word is read once a minute.

    Nobody knows which renewer somebody else's client named: by Flink's default it is none.
    """
    claim, app = newest.claim, newest.application
    if claim is None or isinstance(claim.spec, UnknownSpec):
        return None
    launch = WorkerTokens(_WORKER, renewed=claim.submitted_by_us)
    if app is None or app.state is not ApplicationState.RUNNING or not claim.submitted_by_us:
        return launch
    now = session.hdfs.now()
    known = memory.of(app.id, claim.nonce)
    if known.kept is None or memory.clock() - known.kept[0] >= SERVES:
        known.kept = memory.clock(), _kept(session, claim, names)
    kept = known.kept[1]
    if kept is None or kept.application != app.id:
        waited = now - claim.claimed_at
        # Its client withdraws it from the queue after the timeout.
        late = waited >= claim.spec.submit.timeout + 4 * DEFAULT_CONFIRM
        never = f"its keeper has confirmed nothing for {format_duration(waited)}" if late else ""
        return replace(launch, silent=never)
    return replace(launch, kept_until=min(_ends(claim, kept), default=None), silent=_silent(kept, now))


def _kept(session: ClusterSession, claim: Claim, names: Collection[str]) -> Kept | None:
    name = kept_file(claim.generation)
    if name not in names:
        return None
    stream = StreamId(claim.spec.name, session.cluster.state_dir) if not isinstance(claim.spec, UnknownSpec) else None
    try:
        return read_kept(StreamFolder(session, stream).text(name), claim.generation) if stream else None
    except (NotFound, InvalidInput, Denied):
        return None


def _silent(kept: Kept, now: datetime) -> str:
    if kept.is_silent(now):
        return f"its keeper's last word is {format_duration(max(now - kept.at, timedelta()))} old"
    return f"its keeper can't keep its tokens up to date: {kept.trouble}" if kept.trouble else ""


def _ends(claim: Claim, kept: Kept) -> Iterator[datetime]:
    """Yield the ends of the file's HDFS tokens. The ResourceManager renews those of the launch alone."""
    lifetimes = claim.credentials.lifetimes
    for token in kept.tokens:
        if token.kind != HDFS_TOKEN or token.issued is None or token.max_date is None:
            continue
        if token.until is not None:
            yield min(token.until, token.max_date)
        elif kept.rewritten is None:
            yield token.max_date
        elif lifetimes is not None:
            yield min(token.issued + lifetimes.renew_interval, token.max_date)
