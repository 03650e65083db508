"""What keeps a restart from being done, in the stream's folder: for people who look from elsewhere than its task.

Nothing is decided by it. It is written again at each try, and concerns its generation alone. What the connection does
not allow blocks a restart, too: a declaration is held against that before anything of it is submitted or kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.clients.local.regular_files import real_path
from airflow_kstream.model.airflow_options import AirflowOptions, NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.streams.contract import blocked_marker, stop_marker
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Blocked, Obstacle, Step, Stop
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.model.versioned import read, write
from airflow_kstream.policy.streams.restart.allowed import refusals, words
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import VERSION
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream
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


def not_allowed(spec: StreamSpec, cluster: Cluster, claim: Claim | None = None) -> Allow:
    """Return what the connection does not allow of a declaration, as the lines that would allow it.

    What the stream's newest claim has is not among it, if a supervisor kept that declaration: what a claim says by
    itself, its own job may have written. Paths are judged by where they lead on this host.
    """
    running = claim.spec if claim and claim.file.copied and isinstance(claim.spec, StreamSpec) else None
    return refusals(spec, cluster, running, real_path)


def require_allowed(spec: StreamSpec, cluster: Cluster, claim: Claim | None = None) -> None:
    """Raises InvalidInput: when the connection does not allow what is to be submitted, as `not_allowed` tells.

    Notifiers and brokers are not part of what is submitted: those that are not allowed tell nothing, and keep no stream
    from running.
    """
    submitted = replace(spec, notify=NotifyPolicy(), airflow=AirflowOptions(), kafka=KafkaPolicy())
    if missing := not_allowed(submitted, cluster, claim):
        raise InvalidInput(words(missing, cluster.name), tried=f"check {spec.name} against {cluster.name}")


def needed_by(specs: Iterable[StreamSpec], cluster: Cluster) -> Allow:
    """Return what declarations use beside what the connection has, with their paths as they are on this host."""
    unbounded, needed = replace(cluster, allow=Allow()), Allow()
    for spec in specs:
        needed = needed.with_all(not_allowed(spec, unbounded))
    return needed


def needed_by_all(streams: Iterable[RegisteredStream], cluster: Cluster) -> Allow:
    """Return the same of the streams' newest claims, by the copies of their declarations that supervisors kept: nobody
    else's word is to become a line of the connection."""
    claims = (stream.newest for stream in streams if isinstance(stream.newest, Claim))
    kept = (claim.spec for claim in claims if claim.file.copied)
    return needed_by((spec for spec in kept if isinstance(spec, StreamSpec)), cluster)
