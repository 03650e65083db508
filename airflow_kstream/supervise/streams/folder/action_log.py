"""What a reconcile did and saw, told to a person and kept for its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import DoneAction
from airflow_kstream.supervise.clusters.session import ClusterSession

_SHOWN = 5


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
