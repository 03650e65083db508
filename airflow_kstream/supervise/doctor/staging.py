"""Spark's staging folders: those of running applications must be there, those of ended ones must not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.try_ask import try_ask
from airflow_kstream.supervise.streams.spark.engines import engine_of


@dataclass
class StagingFolders:
    """The staging folders of a cluster's users, each listed once."""

    session: ClusterSession
    _listed: dict[str, frozenset[str] | NotChecked] = field(default_factory=dict)

    def of(
        self, spec: StreamSpec, app: Application | None, ended: Sequence[Application]
    ) -> tuple[bool | NotChecked, tuple[str, ...]]:
        """Return whether the running application's folder is there, and those that ended applications left."""
        there = self._is_there(spec, app) if app else True
        left = [folder for one in ended for folder in self._folders(spec, one) if self._has(folder) is True]
        return there, tuple(left)

    def _is_there(self, spec: StreamSpec, app: Application) -> bool | NotChecked:
        answers = [self._has(folder) for folder in self._folders(spec, app)]
        return True if True in answers else next((one for one in answers if isinstance(one, NotChecked)), False)

    def _folders(self, spec: StreamSpec, app: Application) -> tuple[str, ...]:
        return tuple(engine_of(spec).leftovers(app, self.session.cluster, spec))

    def _has(self, folder: str) -> bool | NotChecked:
        parent, _, name = folder.rpartition("/")
        if parent not in self._listed:
            right = f"the right to list {parent}"
            self._listed[parent] = try_ask(f"the folders in {parent}", lambda: self.session.hdfs.names(parent), right)
        names = self._listed[parent]
        return names if isinstance(names, NotChecked) else name in names
