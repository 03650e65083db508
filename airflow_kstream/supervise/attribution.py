"""Who writes an open file: which stream, which application, and whether that one is known to be finished."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from airflow_kstream.model.application import Application
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.lease import Attribution
from airflow_kstream.model.open_file import OpenFile, Watched
from airflow_kstream.supervise.access import Access
from airflow_kstream.supervise.folder import StreamFolder
from airflow_kstream.supervise.watch import stream_names

# An application's id in a path, or a MapReduce task attempt's in a client name: DFSClient_attempt_<cluster>_<n>_m_...
_APPLICATION = re.compile(
    r"(?:application|attempt|appattempt|container)_(?:e\d+_)?(?P<cluster>\d{10,})_(?P<number>\d{4,})"
)
# An application is writing a little before YARN calls it started, and a little after it is finished, by clocks.
_CLOCKS = timedelta(seconds=5)


@dataclass(frozen=True)
class _Declared:
    """A path that a stream declares, and how."""

    stream: StreamId
    path: str
    how: str


class Attributions:
    """Asks the state_dir once for what streams declare, and the ResourceManager once for each application."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._declared: Sequence[_Declared] | None = None
        self._applications: dict[str, Application | None] = {}
        self._generations: dict[str, tuple[Application, ...]] = {}

    def of(self, watched: Watched) -> Attribution:
        """Never fails: whoever can't be asked leaves the writer unknown, and says so in `how`."""
        try:
            return self._named(watched.file) or self._by_stream(watched) or Attribution(host=watched.file.host)
        except KstreamError as error:
            return Attribution(host=watched.file.host, how=f"not known: {error}")

    def is_finished(self, application: str) -> bool | None:
        """Whether the application of that id, or every application of the stream of that name, has ended.

        None where that is not known: the ResourceManager is away, or has none of that name.
        """
        try:
            if _APPLICATION.fullmatch(application):
                app = self._application(application)
                return None if app is None else not app.alive
            found = self._of_stream(StreamId(application, self._access.cluster.state_dir))
        except KstreamError:
            return None
        return not any(app.alive for app in found) if found else None

    def _named(self, file: OpenFile) -> Attribution | None:
        for where, text in (("its holder's name", file.holder or ""), ("its path", file.path)):
            match = _APPLICATION.search(text)
            if match:
                name = f"application_{match['cluster']}_{match['number']}"
                app = self._application(name)
                return Attribution(None, name, file.host, None if app is None else not app.alive, f"named in {where}")
        return None

    def _by_stream(self, watched: Watched) -> Attribution | None:
        found = next((row for row in self._declarations() if _below(watched.file.path, row.path)), None)
        if found is None:
            return None
        app = _alive_at(watched.open_since, self._of_stream(found.stream))
        return Attribution(
            stream=found.stream.name,
            application=app.id if app else None,
            host=watched.file.host,
            finished=not app.alive if app else None,
            how=found.how,
        )

    def _application(self, name: str) -> Application | None:
        """None where the ResourceManager has none of that name: it forgets, so that proves no end."""
        if name not in self._applications:
            try:
                self._applications[name] = self._access.yarn.application(name)
            except NotFound:
                self._applications[name] = None
        return self._applications[name]

    def _of_stream(self, stream: StreamId) -> tuple[Application, ...]:
        if stream.name not in self._generations:
            self._generations[stream.name] = self._access.yarn.applications(stream.tag)
        return self._generations[stream.name]

    def _declarations(self) -> Sequence[_Declared]:
        """Longest path first, so that the nearest declaration counts."""
        if self._declared is None:
            found = [row for name in self._names() for row in self._of_name(name)]
            self._declared = sorted(found, key=lambda row: -len(row.path))
        return self._declared

    def _names(self) -> tuple[str, ...]:
        try:
            return stream_names(self._access)
        except NotFound:
            return ()

    def _of_name(self, name: str) -> list[_Declared]:
        stream = StreamId(name, self._access.cluster.state_dir)
        folder = StreamFolder(self._access.hdfs, stream)
        try:
            claim = folder.claim(folder.names())
        except KstreamError:
            # A broken claim hides its own stream and no other.
            return []
        if claim is None:
            return []
        spec = claim.spec
        arguments = [path for word in spec.arguments if (path := _hdfs_path(word))]
        return [_Declared(stream, _hdfs_path(path), "it lies in its checkpoint") for path in spec.checkpoints] + [
            _Declared(stream, path, "it lies below a path among its arguments") for path in arguments
        ]


def _alive_at(moment: datetime, applications: Sequence[Application]) -> Application | None:
    """The one that ran when the file was opened."""
    return next((app for app in applications if _ran(app, moment)), None)


def _ran(app: Application, moment: datetime) -> bool:
    if app.started is None or moment < app.started - _CLOCKS:
        return False
    return app.finished is None or moment <= app.finished + _CLOCKS


def _hdfs_path(word: str) -> str:
    """The path of an absolute path or hdfs:// address, empty for any other word or the root."""
    parts: Mapping[str, str] = urlsplit(word)._asdict()
    known = parts["scheme"] in ("", "hdfs") and parts["path"].startswith("/")
    return parts["path"].rstrip("/") if known else ""


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")
