"""Tasks that find events themselves, and tell them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from airflow_kstream.assets import asset_uri, cluster_inlets
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.declared import read
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.notifications import tasks
from airflow_kstream.notifications.tasks import tell_from_task
from airflow_kstream.operators.retries import KstreamOperator
from airflow_kstream.policy.states.due import REPORT, fitted
from airflow_kstream.states.recorder import is_not_named

log = logging.getLogger(__name__)


class TellingOperator(KstreamOperator):
    """The base of operators that tell what begins and what ends. A stream's own events are its trigger's to tell.

    Example::

        class UnwatchedOperator(TellingOperator):
            def execute(self, context):
                trouble = Trouble(EventKind.UNWATCHED, "no task waits for it", "orders")
                self.tell([trouble], {EventKind.UNWATCHED}, "unwatched")

        notify = {"notifier": "airflow.providers.smtp.notifications.smtp.SmtpNotifier"}
        UnwatchedOperator(task_id="tell", cluster_conn_id="prod", notify=notify)

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param notify: `{notifier: CLASS, kwargs: {...}}` of these events; by default the notifier of `[kstream] notifier`.
        What Airflow calls when the task itself fails is `on_failure_callback`, as for any operator.
    :raises InvalidInput: when `notify` is wrong.
    """

    def __init__(self, *, cluster_conn_id: str, notify: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # What pages show is kept with it, for as long as a DAG names it.
        self.inlets = [*self.inlets, *cluster_inlets(cluster_conn_id)]
        self.cluster_conn_id = cluster_conn_id
        self.notify = read(NotifyPolicy, notify or {})

    def tell(
        self,
        seen: Sequence[Trouble],
        kinds: Collection[EventKind],
        key: str,
        undecided: Callable[[str], bool] = lambda about: False,
    ) -> None:
        """Tell it once. `key` tells it apart from what other tasks tell of the cluster.

        `undecided` is whether this run could not judge an event, by what that is about: then it lasts.
        """
        tell_from_task(self.cluster_conn_id, self.notify, seen, kinds, key, undecided)

    def shown(self, key: str) -> object:
        """Return what an earlier run stored for pages under this key; None if that can't be read."""
        with suppress(Exception):
            return tasks.get(asset_uri(self.cluster_conn_id), key)
        return None

    def show(self, key: str, value: Mapping[str, Any]) -> None:
        """Store for pages what this task found. It fails no task. Nothing where no DAG names the cluster's asset."""
        try:
            tasks.put(asset_uri(self.cluster_conn_id), key, fitted(value, REPORT))
        except Exception as error:
            if not is_not_named(error):
                log.warning("What was found can't be stored, so pages may show it late: %r", error)
