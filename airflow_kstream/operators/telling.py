"""Tasks that find events themselves, and tell them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from airflow_kstream.model.declared import read
from airflow_kstream.model.event import EventKind, Trouble
from airflow_kstream.model.notify import NotifyPolicy
from airflow_kstream.notifications.tasks import tell_from_task
from airflow_kstream.operators.retries import KstreamOperator


class TellingOperator(KstreamOperator):
    """The base of operators that tell what begins and what ends. A stream's own events are its trigger's to tell.

    :param notify: `{notifier: CLASS, kwargs: {...}}` of these events; by default the notifier of `[kstream] notifier`.
        What Airflow calls when the task itself fails is `on_failure_callback`, as for any operator.
    :raises InvalidInput: when `notify` is wrong.
    """

    cluster_conn_id: str

    def __init__(self, *, notify: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.notify = read(NotifyPolicy, notify or {})

    def tell(self, seen: Sequence[Trouble], kinds: Collection[EventKind], key: str) -> None:
        """Tell it once. `key` is the place of what was told before, in the state of the cluster's asset."""
        tell_from_task(self.cluster_conn_id, self.notify, seen, kinds, key)
