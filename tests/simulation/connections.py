"""The connections of a history, from which Airflow's operators and triggers make their clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

from airflow.sdk import BaseHook, Connection

from airflow_kstream.model.clusters.cluster import Cluster
from tests.simulation.virtual import current

if TYPE_CHECKING:
    from tests.simulation.world import World

# A folder that is on no host.
_GONE = "/etc/hadoop/gone"


class Connections:
    """What Airflow returns: the addresses at which the servers answered when somebody last edited them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.edit()

    @property
    def are_right(self) -> bool:
        return self._addresses == self._answering

    @property
    def _answering(self) -> tuple[str, ...]:
        return tuple(manager.address for manager in self._world.resourcemanagers)

    def edit(self) -> None:
        """Write down where the servers answer now."""
        self._addresses = self._answering
        state_dirs = {state_dir for _, state_dir in self._world.plan.keepers}
        clusters = [self._world.cluster(state_dir) for state_dir in state_dirs]
        self._of = {cluster.name: _connection(cluster) for cluster in clusters}
        self._lost = {cluster.name: _connection(replace(cluster, hadoop_conf_dir=_GONE)) for cluster in clusters}

    @contextmanager
    def stored(self) -> Iterator[None]:
        async def aget(conn_id: str) -> Connection:
            """Answer a triggerer: what it gets names a folder that its host may lack."""
            program = current()
            assert program is not None
            lacks = self._world.now < self._world.without_conf_until.get(program.keeper, 0.0)
            return self._lost[conn_id] if lacks else self._of[conn_id]

        with ExitStack() as stack:
            for name, get in (("get_connection", lambda conn_id: self._of[conn_id]), ("aget_connection", aget)):
                # Airflow's database is another for each process of this simulation.
                stack.enter_context(patch.object(BaseHook, name, get))
            yield


def _connection(cluster: Cluster) -> Connection:
    fields = {
        "resourcemanagers": ",".join(cluster.resourcemanagers),
        "namenodes": ",".join(cluster.namenodes),
        "default_fs": cluster.default_fs,
        "principal": cluster.watcher.principal,
        "keytab_path": cluster.watcher.keytab,
        "state_dir": cluster.state_dir,
        "hadoop_conf_dir": cluster.hadoop_conf_dir,
    }
    return Connection(conn_id=cluster.name, conn_type="kstream", extra=json.dumps(fields))
