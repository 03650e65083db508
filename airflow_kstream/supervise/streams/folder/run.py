"""A stream under supervision, which is the argument of almost every step; and the log of what a reconcile did and saw,
told to a person and kept for its report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Conflict, InvalidInput
from airflow_kstream.model.streams.freeze import NOT_FROZEN, Freeze
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import DoneAction
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.secrets import LocalSecrets, Secrets
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

if TYPE_CHECKING:
    from airflow_kstream.supervise.streams.folder.engine import Engine


_SHOWN = 5


@dataclass(frozen=True)
class StreamRun:
    """One stream as declared, the session as its identity, its engine, and the source of its secrets.

    `despite_freeze` is a person's explicit word: for this run, the cluster is not frozen. `by` is the person whose
    words it writes; by default it is this process's user and host. `declared` is False if nothing but a claim says what
    the spec is: then the session is the connection's own, which proves nobody's name, and nothing is submitted.
    """

    session: ClusterSession
    spec: StreamSpec
    engine: Engine
    secrets: Secrets = field(default_factory=LocalSecrets)
    despite_freeze: bool = False
    by: str = ""
    declared: bool = True

    @property
    def cluster(self) -> Cluster:
        return self.session.cluster

    @property
    def id(self) -> StreamId:
        return StreamId(self.spec.name, self.cluster.state_dir)

    @property
    def folder(self) -> StreamFolder:
        return StreamFolder(self.session, self.id, self.by, acting=self.acts_as_stream)

    @property
    def acts_as_stream(self) -> bool:
        """Return whether the session logged in as the stream's own identity: then HDFS's name for it is the stream's
        user. A connection that lacks what that identity needs can't have."""
        try:
            return self.declared and self.session.identity == identity_of(self.spec, self.cluster)
        except InvalidInput:
            return False

    def require_declared(self, tried: str) -> None:
        """Raises Conflict: when nothing but a claim says what the stream is."""
        if not self.declared:
            why = "no supervisor kept a copy of its declaration: run `kstream streams reconcile` with the declaration"
            raise Conflict(why, tried=tried)

    def freeze(self, listing: StateListing | None = None) -> Freeze:
        """Read the last order to freeze the cluster, as far as it concerns this run. Raises as `FreezeStore.newest`."""
        return NOT_FROZEN if self.despite_freeze else self._freezes.newest(listing)

    def is_frozen(self) -> bool:
        """Return whether the cluster is frozen now. Asked again before each step that was prepared for long."""
        return self.freeze().holds(self.session.hdfs.now())

    def take_fence(self, fence: str) -> bool:
        """Take the fence of a claim that is given up; return False, and leave it, while the cluster is frozen."""
        if self.is_frozen():
            return False
        self.folder.take_fence(fence)
        return True

    @cached_property
    def _freezes(self) -> FreezeStore:
        return FreezeStore(self.session)


@dataclass
class ActionLog:
    """A line for each action and each wait. `done` are the actions, by the NameNode's clock."""

    session: ClusterSession
    tell: Callable[[str], None]
    done: list[DoneAction] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _strangers: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Forget what was done and told: another reconcile begins."""
        self.done = []
        self._told.clear()

    def record(self, what: str, why: str, submitted: int | None = None) -> None:
        """Tell an action and keep it. `submitted` is the generation, if it was a submission."""
        self.done.append(DoneAction(self.session.hdfs.now(), what, why, submitted))
        self._told.clear()
        self.tell(f"{what} ({why})")

    def tell_once(self, line: str) -> None:
        """Tell a line once until something is done: an outage of ten minutes is two lines, not three hundred."""
        if line not in self._told:
            self._told.add(line)
            self.tell(line)

    def tell_of_strangers(self, observation: Observation) -> None:
        """Tell once of each application of another user that carries the stream's tags, and of each stranger's file."""
        for app in observation.yarn.strangers:
            if app.id not in self._strangers:
                self._strangers.add(app.id)
                self.tell(
                    f"{app.id} of user {app.user} carries this stream's tags and is left alone: it is {app.state}"
                )
        if files := {
            name: owner for name, owner in observation.folder.strangers.items() if name not in self._strangers
        }:
            self._strangers |= files.keys()
            self.tell(
                f"{observation.stream.folder} holds what strangers wrote, which counts for nothing: {named(files)}"
            )


def named(files: Mapping[str, str]) -> str:
    """Name strangers' files with their owners, as far as a person wants to read on."""
    shown = [f"{name} of {owner}" for name, owner in sorted(files.items())][:_SHOWN]
    return ", ".join(shown) + (f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else "")
