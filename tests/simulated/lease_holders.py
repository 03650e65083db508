"""A NameNode that knows whose leases are renewed, and one run of a recovery that asks it. Time only jumps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast

from airflow_kstream.clients.hdfs.leases import HolderAnswer
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import Attribution, HolderLiveness, HolderStatus, LeaseRules
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.model.leases.requests import ApprovalRules
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.findings import Survey, judged_finding
from airflow_kstream.supervise.leases.holders import HolderProbe
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.judging import Approvals, Judging
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.survey import Surveyor
from tests.simulated.servers import SimHdfs

SOFT_LIMIT = timedelta(seconds=60)
ME = Identity("streamer@EXAMPLE.COM", keytab="/streamer.keytab")


@dataclass
class SimLeases:
    """The leases of open files, by their holders; those `alive` renew them all the time. `grows` are files that get
    longer so long after the first look at them.

    A probe of a holder that has not renewed for a minute finds it dead and renews its lease, as HDFS does.
    """

    hdfs: SimHdfs
    files: Mapping[str, str]
    alive: set[str] = field(default_factory=set)
    renewed: dict[str, datetime] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    grows: dict[str, timedelta] = field(default_factory=dict)

    def ask_holders(self, paths: Sequence[str]) -> list[HolderAnswer | KstreamError]:
        return [self._answer(path) for path in paths]

    def _answer(self, path: str) -> HolderAnswer:
        holder, now = self.files[path], self.hdfs.now()
        self.asked.append(holder)
        if holder in self.alive or now - self.renewed.get(holder, now - 2 * SOFT_LIMIT) < SOFT_LIMIT:
            return HolderAnswer(HolderLiveness.RENEWING, holder, "worker7")
        self.renewed[holder] = now
        return HolderAnswer(HolderLiveness.DEAD, recovering=True)


@dataclass
class SimRecovery:
    """One run that recovers the open files below some folders, in a process of its own."""

    leases: SimLeases
    folder: str
    below: str = "/"
    told: list[str] = field(default_factory=list)
    dead_holders: dict[str, datetime] = field(default_factory=dict)
    base: None = None

    def begin(self) -> Journal:
        """Return the journal of a run that begins now."""
        self.journal = Journal.begin(cast(Hdfs, self.leases.hdfs), self.folder, ME, self.told.append)
        return self.journal

    def recovered(self) -> list[str]:
        """Judge the files until none is left to judge, and return those whose leases are taken."""
        self.begin().begun(self.below)
        probe = HolderProbe(cast(LeaseSession, self), self.journal, Watcher(tell=self.told.append))
        files = {path: holder for path, holder in self.leases.files.items() if path.startswith(self.below)}
        began = self._survey(_first_looks(files, self.now()))
        judging = Judging(cast(Surveyor, self), began, probe, Approvals(cast(LeaseSession, self), ApprovalRules()))
        taken: list[str] = []
        while (due := judging.due()) is not None:
            self.leases.hdfs.clock.sleep(due.total_seconds())
            taken += [target.path for target, _ in judging.judged(1000)]
        self.journal.close()
        return taken

    # What a session and a surveyor do for it.

    def holders(self, paths: Sequence[str]) -> list[str | None]:
        return [self.leases.files[path] for path in paths]

    def ask_holders(self, paths: Sequence[str]) -> list[HolderAnswer | KstreamError]:
        return self.leases.ask_holders(paths)

    def now(self) -> datetime:
        return self.leases.hdfs.now()

    def health(self) -> HdfsHealth:
        return HdfsHealth("nn1", False, 0, 0, "3.4.3", self.now() - timedelta(hours=1))

    def look_again(self, survey: Survey) -> Survey:
        looked = (row.history for row in survey.findings)
        return self._survey([row.extended(row.file, self._state(row), self.now(), self.now()) for row in looked])

    def _state(self, row: FileHistory) -> FileState:
        grows = self.leases.grows.get(row.file.path)
        has_grown = grows is not None and self.now() - row.first_seen >= grows
        return replace(row.state, length=9, visible_length=9) if has_grown else row.state

    def _survey(self, rows: Iterable[FileHistory]) -> Survey:
        now, health, rules = self.now(), self.health(), LeaseRules()
        findings = tuple(judged_finding(row, Attribution(), HolderStatus(), now, health, rules) for row in rows)
        return Survey(now, "listOpenFiles", health, findings, {}, rules)


def _first_looks(files: Mapping[str, str], now: datetime) -> list[FileHistory]:
    opened = now - timedelta(hours=1)
    return [
        FileHistory.begin(
            OpenFile(path, number, holder, "worker7"),
            FileState(path, number, "alice", opened, True, 5, Block(number, 1, 5, False), visible_length=5),
            now,
        )
        for number, (path, holder) in enumerate(files.items())
    ]
