"""The writer of an open file: its stream or application, and whether that is known to be finished."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_kstream.model.application import Application
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.generation import Claim, StreamId
from airflow_kstream.model.hdfs_path import is_below, path_in, plain_path
from airflow_kstream.model.lease import Attribution
from airflow_kstream.model.open_file import FileHistory, OpenFile
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.registry import RegisteredStream, newest_claims

# A YARN application's id, or that of a MapReduce task attempt in a client name: DFSClient_attempt_<cluster>_<n>_m_...
# Thirteen digits are milliseconds: Spark's own attempts carry fourteen, which are a date.
_APPLICATION = re.compile(
    r"(?:application|attempt|appattempt|container)_(?:e\d+_)?(?P<cluster>\d{13})_(?P<number>\d{4,})"
)


@dataclass(frozen=True)
class _Declared:
    """A path that a stream declares, and how."""

    stream: StreamId
    path: str
    how: str
    certain: bool


class Attributions:
    """A finder of writers: it reads the streams' declarations in state_dir once, and each application in YARN once.

    Only a holder's name or a checkpoint identifies the writer for certain, and can prove that its application is
    finished. An id in a path, or a path among a stream's arguments, is a hint for people: it leaves that unknown.
    """

    def __init__(self, session: ClusterSession) -> None:
        self._session = session
        self._declared: Sequence[_Declared] | None = None
        self._applications: dict[str, Application | None] = {}
        self._generations: dict[str, tuple[Application, ...]] = {}
        self._away: KstreamError | None = None

    def of(self, history: FileHistory) -> Attribution:
        """Attribute the file. Never fails: if a server is away the writer is unknown, with the reason in `how`."""
        file = history.file
        try:
            if self._away is None:
                return (
                    self._by_holder(file) or self._by_stream(file) or self._by_path(file) or Attribution(host=file.host)
                )
        except KstreamError as error:
            # Ten thousand files must not each wait for a server that is away.
            self._away = error
        return Attribution(host=file.host, how=f"unknown: {self._away}")

    def is_finished(self, application: str) -> bool | None:
        """Tell whether the application of that id, or every application of the stream of that name, has ended.

        None if that is not known: the ResourceManager is away, or has none of that name.
        """
        try:
            if _APPLICATION.fullmatch(application):
                app = self._application(application)
                return None if app is None else not app.alive
            return _all_ended(self._of_stream(StreamId(application, self._session.cluster.state_dir)))
        except KstreamError:
            return None

    def _by_holder(self, file: OpenFile) -> Attribution | None:
        name = _named_in(file.holder or "")
        app = self._application(name) if name else None
        return Attribution(None, app.id, file.host, not app.alive, "named in its holder's name") if app else None

    def _by_path(self, file: OpenFile) -> Attribution | None:
        name = _named_in(file.path)
        return Attribution(None, name, file.host, None, "named in its path") if name else None

    def _by_stream(self, file: OpenFile) -> Attribution | None:
        """Attribute by the stream's declaration. Any of its generations may write: all must be finished."""
        declared = next((row for row in self._declarations() if is_below(row.path, file.path)), None)
        if declared is None:
            return None
        applications = self._of_stream(declared.stream)
        newest = max(applications, key=lambda app: app.order, default=None)
        finished = _all_ended(applications) if declared.certain else None
        return Attribution(declared.stream.name, newest.id if newest else None, file.host, finished, declared.how)

    def _application(self, name: str) -> Application | None:
        """Look it up; None if the ResourceManager doesn't list it: it forgets applications, so that proves no end."""
        if name not in self._applications:
            try:
                self._applications[name] = self._session.yarn.application(name)
            except NotFound:
                self._applications[name] = None
        return self._applications[name]

    def _of_stream(self, stream: StreamId) -> tuple[Application, ...]:
        if stream.name not in self._generations:
            self._generations[stream.name] = self._session.yarn.applications(stream.tag)
        return self._generations[stream.name]

    def _declarations(self) -> Sequence[_Declared]:
        """Return the declarations, longest path first, so that the nearest one counts."""
        if self._declared is None:
            rows = [row for registered in newest_claims(self._session) for row in _declared_by(registered)]
            self._declared = sorted(rows, key=lambda row: -len(row.path))
        return self._declared


def _declared_by(registered: RegisteredStream) -> list[_Declared]:
    """Return what one stream declares. An unreadable claim hides its own stream and no other."""
    claim, stream = registered.newest, registered.stream
    if not isinstance(claim, Claim) or isinstance(claim.spec, UnknownSpec):
        return []
    spec = claim.spec
    # The root would attribute every file.
    arguments = [path for word in spec.arguments if (path := path_in(word)) and path != "/"]
    return [_Declared(stream, plain_path(path), "in its checkpoint", True) for path in spec.checkpoints] + [
        _Declared(stream, path, "below a path among its arguments", False) for path in arguments
    ]


def _named_in(text: str) -> str | None:
    match = _APPLICATION.search(text)
    return f"application_{match['cluster']}_{match['number']}" if match else None


def _all_ended(applications: Sequence[Application]) -> bool | None:
    return not any(app.alive for app in applications) if applications else None
