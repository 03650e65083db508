"""How the streams of a state_dir stand: those that have a folder there, and those that run without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass
class StandingLook:
    """Looks at the streams of a state_dir: once, or `again` and again, which remembers what does not change."""

    session: ClusterSession
    again: bool = False
    _watch: Watch | None = None

    def look(self, name: str = "") -> Mapping[str, Verdict]:
        """Return a verdict for the stream of this name, or for all of them without one.

        A stream that runs and has no folder has lost it: the verdict is not a conclusion, and says what a person may
        do. To find those costs one listing of applications, however many streams there are.

        Raises NotFound: when there is no such stream, or neither a state_dir nor anything that runs. Raises
        Unavailable: when no stream has a folder, and what runs can't be seen.
        """
        wanted, lost = _wanted(self.session, name)
        if self._watch is None:
            self._watch = Watch(self.session, again=self.again, reads_logs=len(wanted) <= _MOST_LOGS)
        seen = self._watch.round([stream for stream in wanted if stream not in lost])
        return {**seen, **{stream: verdict for stream, verdict in lost.items() if stream in wanted}}


def standing(session: ClusterSession, name: str = "") -> Mapping[str, Verdict]:
    """Look once. Raises as `StandingLook.look`."""
    return StandingLook(session).look(name)


def _wanted(session: ClusterSession, name: str) -> tuple[tuple[str, ...], Mapping[str, Verdict]]:
    """Return the names of the streams to look at, and verdicts on those that have lost their folders."""
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
    return (name,) if name else (*names, *lost), lost


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
