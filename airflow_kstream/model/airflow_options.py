"""What a declaration says to Airflow about its own tasks. It concerns neither the job nor its supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_kstream.model.declared import read
from airflow_kstream.model.fields import AirflowName, AirflowTag, PlainData, Priority
from airflow_kstream.model.stream_policies import STRICT


@dataclass(frozen=True)
class AirflowOptions:
    """Options of the tasks of a declaration's DAGs; unset means Airflow's own default.

    A larger `priority` goes first, as Airflow's absolute priority weight. `tags` are added to those that the DAGs have
    anyway. `executor_config` is the executor's: for Kubernetes `{pod_override: {spec: ...}}`, a pod as in a manifest.

    An edit restarts no stream, and no claim keeps it.
    """

    __pydantic_config__ = STRICT

    queue: AirflowName | None = None
    pool: AirflowName | None = None
    priority: Priority | None = None
    owner: AirflowName | None = None
    tags: tuple[AirflowTag, ...] = ()
    executor_config: Mapping[str, PlainData] = field(default_factory=dict)

    def shared_with(self, other: AirflowOptions) -> AirflowOptions:
        """Return what says where and whose the tasks are, where both say the same; not pool and priority.

        A pool that streams fill would keep their DAGs' neighbours out.
        """
        return AirflowOptions(
            queue=self.queue if self.queue == other.queue else None,
            owner=self.owner if self.owner == other.owner else None,
            tags=tuple(tag for tag in self.tags if tag in other.tags),
            executor_config=self.executor_config if self.executor_config == other.executor_config else {},
        )


@dataclass(frozen=True)
class _Block:
    airflow: AirflowOptions = AirflowOptions()


def options_of(declaration: Mapping[str, Any]) -> AirflowOptions:
    """Read the block `airflow` of a declaration. Raises InvalidInput: when a field is wrong; it names each."""
    return read(_Block, {"airflow": declaration["airflow"]} if "airflow" in declaration else {}).airflow
