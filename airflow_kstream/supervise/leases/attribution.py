"""The writer of an open file: its stream or application, and whether that is known to be finished."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.hdfs_path import is_below, path_in, plain_path
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.leases.lease import Attribution, path_matches
from airflow_kstream.model.leases.open_file import FileHistory, OpenFile
from airflow_kstream.model.streams.generation import Claim, Missing, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, newest_claims, registered

# A YARN application's id, or that of a MapReduce task attempt in a client name: DFSClient_attempt_<cluster>_<n>_m_...
# Thirteen digits are milliseconds: Spark's own attempts carry fourteen, which are a date.
_APPLICATION = re.compile(
    r"(?:application|attempt|appattempt|container)_(?:e\d+_)?(?P<cluster>\d{13})_(?P<number>\d{4,})"
)


@dataclass(frozen=True)
class _Declared:
    """A path that a stream declares, and how. `believed`: not only the stream's own user says so. `names` is the
    pattern of the files below it that are meant, and `spec` what declares them."""

    by: RegisteredStream
    path: str
    how: str
    certain: bool
    believed: bool
    spec: StreamSpec
    names: str = "*"

    def includes(self, path: str) -> bool:
        return is_below(self.path, path) and path_matches(path, self.names)


class Attributions:
    """A finder of writers: it reads the streams' declarations in state_dir once, and each application in YARN once.

    Only a holder's name, a checkpoint or declared outputs identify the writer for certain, and can prove that its
    application is finished. An id in a path, or a path among a stream's arguments, is a hint for people: it leaves that
    unknown. So do a checkpoint and outputs that only the stream's own user claims: a tenant could name another's. Of
    applications with a stream's tags only those of who claimed count.
    """

    def __init__(self, session: ClusterSession) -> None:
        self._session = session
        self._declared: Sequence[_Declared] | None = None
        self._applications: dict[str, Application | None] = {}
        self._generations: dict[str, tuple[Application, ...] | None] = {}
        self._given_up: dict[str, datetime | None] = {}
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

        None if that is not known: the ResourceManager is away or has none of that name, the stream's newest claim can't
        be read, or its user is not proven.
        """
        try:
            if _APPLICATION.fullmatch(application):
                app = self._application(application)
                return None if app is None else not app.alive
            if application not in self._generations:
                self._of_stream(registered(self._session, StreamId(application, self._session.cluster.state_dir)))
            return _all_ended(self._generations[application])
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
        declared = self._declared_for(file.path)
        if declared is None:
            return None
        applications = self._of_stream(declared.by)
        newest = max(applications or (), key=lambda app: app.order, default=None)
        finished = _all_ended(applications) if declared.certain else None
        return Attribution(declared.by.stream.name, newest.id if newest else None, file.host, finished, declared.how)

    def _declared_for(self, path: str) -> _Declared | None:
        return next((row for row in self._declarations() if row.includes(path)), None)

    def has_given_up(self, history: FileHistory) -> bool:
        """Tell whether the running job of the stream that opened this file will not touch it again.

        It has not grown since before the job's last restart inside, and no checkpoint from which the job could start
        is older. False if that is not known, or the declaration is only the stream's own user's.
        """
        declared = self._declared_for(history.file.path)
        if declared is None or not declared.certain:
            return False
        name = declared.by.stream.name
        if name not in self._given_up:
            try:
                self._given_up[name] = self._given_up_before(declared)
            except KstreamError:
                self._given_up[name] = None
        before = self._given_up[name]
        return before is not None and history.steady_since < before

    def _given_up_before(self, declared: _Declared) -> datetime | None:
        claim, spec = declared.by.newest, declared.spec
        living = [app for app in self._of_stream(declared.by) or () if app.alive]
        if not isinstance(claim, Claim) or len(living) != 1 or not spec.part_files:
            return None
        return engine_of(spec).given_up_before(self._session, spec, Newest(claim, living[0]))

    def _application(self, name: str) -> Application | None:
        """Look it up; None if the ResourceManager doesn't list it: it forgets applications, so that proves no end."""
        if name not in self._applications:
            try:
                self._applications[name] = self._session.yarn.application(name)
            except NotFound:
                self._applications[name] = None
        return self._applications[name]

    def _of_stream(self, by: RegisteredStream) -> tuple[Application, ...] | None:
        """Return the applications of its generations; None if it is not known which they are."""
        name = by.stream.name
        if name not in self._generations:
            self._generations[name] = self._ours(by, self._session.yarn.applications(by.stream.tag))
        return self._generations[name]

    def _ours(self, by: RegisteredStream, listed: Sequence[Application]) -> tuple[Application, ...] | None:
        newest = by.newest
        if (
            isinstance(newest, KstreamError)
            or (newest and Missing.ADOPTED in newest.file.missing)
            or not self._is_proven(by)
        ):
            return None
        try:
            numbered, _ = by.tagged.split(self._session, listed)
            ours = {app.id: app for _, app in numbered}
            if newest and newest.adoption.application and newest.adoption.application not in ours:
                # A job that somebody else submitted carries no tags of ours.
                adopted = self._application(newest.adoption.application)
                if adopted is None or not by.tagged.is_adopted(self._session, newest.generation, adopted):
                    return None
                ours[adopted.id] = adopted
        except KstreamError:
            # It concerns this stream alone: a stranger's application must not hide the writers of all files.
            return None
        return tuple(ours.values())

    def _declarations(self) -> Sequence[_Declared]:
        """Return the declarations, longest path first, so that the nearest one counts; last those that only a stream's
        own user makes, so that they hide no others."""
        if self._declared is None:
            rows = [row for by in newest_claims(self._session) for row in self._declared_by(by)]
            self._declared = sorted(rows, key=lambda row: (not row.believed, -len(row.path)))
        return self._declared

    def _declared_by(self, by: RegisteredStream) -> list[_Declared]:
        """Return what one stream declares. An unreadable claim hides its own stream and no other."""
        claim = by.newest
        if not isinstance(claim, Claim) or isinstance(claim.spec, UnknownSpec):
            return []
        spec, believed = claim.spec, claim.file.copied or self._needs_no_copy(claim.file.author)
        checkpoints = [plain_path(path) for path in spec.checkpoints]
        # The root would attribute every file.
        arguments = [path for word in spec.arguments if (path := path_in(word)) and path != "/"]
        return [
            *(_Declared(by, path, "in its checkpoint", believed, believed, spec) for path in checkpoints),
            *(
                _Declared(by, plain_path(path), "a part file below its outputs", believed, believed, spec, names)
                for path, names in spec.part_files
            ),
            *(_Declared(by, path, "below a path among its arguments", False, believed, spec) for path in arguments),
        ]

    def _is_proven(self, by: RegisteredStream) -> bool:
        """Return whether all files that count are of authors who are proven to speak for this stream."""
        return bool(by.authored.users) or all(map(self._needs_no_copy, set(by.authored.counted.values())))

    def _needs_no_copy(self, author: str) -> bool:
        """Return whether this author's claim counts without a supervisor's copy: a supervisor's, or our own user's."""
        state = self._session.state
        return not author or author in state.supervisors or author == state.user


def _named_in(text: str) -> str | None:
    match = _APPLICATION.search(text)
    return f"application_{match['cluster']}_{match['number']}" if match else None


def _all_ended(applications: Sequence[Application] | None) -> bool | None:
    return not any(app.alive for app in applications) if applications else None
