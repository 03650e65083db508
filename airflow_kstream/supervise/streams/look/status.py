"""How the streams of a state_dir stand: those that have a folder there, and those that run without one."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, StreamId
from airflow_kstream.policy.streams.ends.unclaimed import lost_folder
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.registry import has_order, no_such_stream, stream_names
from airflow_kstream.supervise.streams.folder.tagged_applications import Numbered
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch

# Each log takes a tenth of a second.
_MOST_LOGS = 20


def standing(session: ClusterSession, name: str = "") -> Mapping[str, Verdict]:
    """Return a verdict for the stream of this name, or for all of them without one.

    A stream that runs and has no folder has lost it: the verdict is not a conclusion, and says what a person may do. To
    find those costs one listing of applications, however many streams there are.

    Raises NotFound: when there is no such stream, or neither a state_dir nor anything that runs. Raises
    Unavailable: when no stream has a folder, and what runs can't be seen.
    """
    doubt: KstreamError | None = None
    running: Mapping[str, Numbered] = {}
    try:
        # Before the folders: whatever runs by now got its folder earlier.
        running = _running(session)
    except KstreamError as error:
        doubt = error
    names = _names(session, missing_ok=bool(running or doubt))
    if doubt and not names:
        raise doubt
    lost = {stream: _lost(session, living) for stream, living in running.items() if stream not in names}
    if name and name not in names and has_order(session, name):
        names = (*names, name)
    if name and name not in {*names, *lost}:
        raise no_such_stream(session, name, {*names, *lost}, tried=f"look at stream {name}")
    wanted = {name} if name else {*names, *lost}
    watch = Watch(session, reads_logs=len(wanted) <= _MOST_LOGS)
    seen = watch.round([stream for stream in names if stream in wanted])
    return {**seen, **{stream: verdict for stream, verdict in lost.items() if stream in wanted}}


def _running(session: ClusterSession) -> Mapping[str, Numbered]:
    """Return the living applications with the tags of a stream of this state_dir, by its name, with generations."""
    found: dict[str, list[tuple[int, Application]]] = {}
    for app in session.yarn.applications(ALL_STREAMS_TAG):
        stream = StreamId.of_tags(app.tags, session.cluster.state_dir)
        number = stream.generation_of(app.tags) if stream else None
        if stream and number is not None and app.alive:
            found.setdefault(stream.name, []).append((number, app))
    return found


def _names(session: ClusterSession, *, missing_ok: bool) -> tuple[str, ...]:
    try:
        return stream_names(session)
    except NotFound:
        if missing_ok:
            return ()
        raise


def _lost(session: ClusterSession, living: Numbered) -> Verdict:
    number, app = max(living, key=lambda pair: (pair[0], pair[1].order))
    why = lost_folder(session.cluster.state_dir, living)
    return Verdict(None, why, generation=number, application=app.id, lives=True)
