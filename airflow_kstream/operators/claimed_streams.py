"""Keep a stream whose declaration is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.streams.declarations import Policies
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import KnownSpec
from airflow_kstream.triggers.memory import Memory

if TYPE_CHECKING:
    from airflow.sdk import Context


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

    def __init__(self, *, name: str, refusal: str, **kwargs: Any) -> None:
        super().__init__(stream={"name": name}, **kwargs)
        self.name = name
        self.refusal = refusal

    def _reconcile(self, context: Context, mode: Mode, memory: Memory) -> dict[str, Any] | None:
        self.log.error("The declaration is refused; %s is kept as it was last submitted. %s", self.name, self.refusal)
        return super()._reconcile(context, mode, memory)

    def _spec(self) -> StreamSpec:
        """Return what is known without a look at the cluster: the name."""
        return StreamSpec(self.name, TicketCredentials(), application="", checkpoints=())

    def _given(self, spec: StreamSpec) -> Policies | None:
        return None

    def _known_on(self, cluster: Cluster) -> KnownSpec:
        try:
            return self._claimed(cluster, self.name)
        except (NotFound, InvalidInput) as error:
            raise AirflowFailException(f"{self.refusal}. And there is nothing to keep: {error}") from error
