"""What a declaration says to Airflow about its own tasks. It concerns neither the job nor its supervisor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_kstream.model.declared import read
from airflow_kstream.model.fields import STRICT, AirflowName, AirflowTag, PlainData, Priority
from airflow_kstream.model.streams.notify import NotifyPolicy, require_notifier

NO_NOTIFIER = NotifyPolicy()
CallbackName = Literal["on_execute", "on_failure", "on_retry", "on_skipped", "on_success"]


@dataclass(frozen=True)
class AirflowOptions:
    """Options of the tasks of a declaration's DAGs; unset means Airflow's own default.

    A larger `priority` goes first, as Airflow's absolute priority weight. `tags` are added to those that the DAGs have
    anyway. `executor_config` is the executor's: for Kubernetes `{pod_override: {spec: ...}}`, a pod as in a manifest.
    `notify` tells the events that the tasks themselves find, of files, tickets and keytabs; those of a stream have the
    `notify` of its declaration. `callbacks` are notifiers that Airflow calls for a task, with the task's own context.

    An edit restarts no stream, and no claim keeps it.
    """

    __pydantic_config__ = STRICT

    queue: AirflowName | None = None
    pool: AirflowName | None = None
    priority: Priority | None = None
    owner: AirflowName | None = None
    tags: tuple[AirflowTag, ...] = ()
    executor_config: Mapping[str, PlainData] = field(default_factory=dict)
    notify: NotifyPolicy = NO_NOTIFIER
    callbacks: Mapping[CallbackName, NotifyPolicy] = field(default_factory=dict)

    def shared_with(self, other: AirflowOptions) -> AirflowOptions:
        """Return what says where and whose the tasks are, where both say the same; not pool and priority.

        A pool that streams fill would keep their DAGs' neighbours out.
        """
        return AirflowOptions(
            queue=self.queue if self.queue == other.queue else None,
            owner=self.owner if self.owner == other.owner else None,
            tags=tuple(tag for tag in self.tags if tag in other.tags),
            executor_config=self.executor_config if self.executor_config == other.executor_config else {},
            notify=self.notify if self.notify == other.notify else NO_NOTIFIER,
            callbacks=self.callbacks if self.callbacks == other.callbacks else {},
        )


def notifiers_of(options: AirflowOptions) -> Iterator[tuple[str, NotifyPolicy]]:
    """Yield each notifier with the words that stand before its fields in a message."""
    yield "airflow.notify.", options.notify
    for name, notify in options.callbacks.items():
        yield f"airflow.callbacks.{name}.", notify


@dataclass(frozen=True)
class _Block:
    airflow: AirflowOptions = AirflowOptions()


def options_of(declaration: Mapping[str, Any]) -> AirflowOptions:
    """Read the block `airflow` of a declaration. Raises InvalidInput: when a field is wrong; it names each."""
    options = read(_Block, {"airflow": declaration["airflow"]} if "airflow" in declaration else {}).airflow
    for where, notify in notifiers_of(options):
        require_notifier(notify, where)
    return options
