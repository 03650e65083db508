"""Keep a stream whose declaration is refused."""

from __future__ import annotations

from typing import Any

from airflow_kstream.model.streams.stream import EngineName
from airflow_kstream.operators.streams import SparkStreamOperator


class ClaimedStreamOperator(SparkStreamOperator):
    """Keep a stream as it was last submitted, because its present declaration is refused.

    It watches the stream and restarts it at its horizon, like SparkStreamOperator, from the declaration that the newest
    claim names, as a supervisor kept it, with the policies of the last declaration that was not refused, if they were
    edited since. Each run's log begins with the refusal. It never submits what was not submitted before: the task of a
    stream without a claim fails with the refusal. Where no supervisor kept the declaration, the stream is watched and
    can be stopped, and what is due otherwise is blocked until a declaration is accepted again.

    Example::

        ClaimedStreamOperator(
            task_id="keep", name="orders", refusal="orders.yaml: it is not YAML", cluster_conn_id="prod"
        )

    :param name: the stream's name.
    :param refusal: what is wrong with the declaration.
    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param conn_id: the `spark` connection, as of SparkStreamOperator.
    """

    # A refused declaration doesn't tell what runs.
    engines = tuple(EngineName)

    def __init__(self, *, name: str, refusal: str, **kwargs: Any) -> None:
        super().__init__(stream={"name": name}, **kwargs)
        self.name = name
        self.refusal = refusal

    def _refused(self) -> str:
        # Its DAG is made of the refusal, and tells it.
        return ""
