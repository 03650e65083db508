"""Give a job that somebody else submitted a fresh HDFS token, from a DAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import InvalidInput, TooEarly
from airflow_kstream.model.fields import SPARK_BINARIES
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.operators.retries import KstreamOperator, wrong_input_is_final
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.tokens.push import HandPush, push_by_hand

if TYPE_CHECKING:
    from airflow.sdk import Context


class DelegationTokenPushOperator(KstreamOperator):
    """Push a fresh HDFS token to a running Spark job without a keytab, over Spark's own RPC, as `kstream tokens push`.

    While the present token ends later than a fresh one would, the task is skipped: the ResourceManager renews what was
    submitted and nothing else. From the first push on, each run pushes. So give the DAG a schedule of at most half of
    the cluster's renew interval (a day by default), and `max_active_runs=1`; or let the DAG begin with a
    `DelegationTokenExpirySensor(application=...)`. The result (XCom) tells both ends and by when to push again.

    A token is made only for the user as whom YARN runs the job. It crosses the network in clear, by Spark's RPC,
    to the host that the job names in its web UI: who can listen there can act as that user on HDFS.

    What it does not do: it restarts nothing, and can't reach a job with `spark.authenticate`. The worker needs a way to
    the driver's port and to its web UI. A declared stream with `credentials: {refresh: true}` needs none of this.

    Example::

        DelegationTokenPushOperator(task_id="push", cluster_conn_id="prod", application="application_17_0042")

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param application: the id of the running application.
    :param principal, keytab: push as this principal with its keytab (an absolute path on the worker), the one that the
        job's own tokens were made by; give both or neither.
    :param spark_submit: a client of the job's own Spark version: a name on the worker's PATH, or a path.
    :param shorten: push although the fresh token ends before the present one.
    :raises AirflowSkipException: when it is too early for a push.
    :raises AirflowFailException: when the fields or the connection are wrong.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "application", "principal", "keytab", "spark_submit")

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        application: str,
        principal: str | None = None,
        keytab: str | None = None,
        spark_submit: str = SPARK_BINARIES[0],
        shorten: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.application = application
        self.principal = principal
        self.keytab = keytab
        self.spark_submit = spark_submit
        self.shorten = shorten

    def execute(self, context: Context) -> dict[str, Any]:
        """Push, and return what its driver uses now. Raises Denied: when the job's tokens are another principal's."""
        try:
            with wrong_input_is_final():
                pushed = self._push()
        except TooEarly as early:
            # Airflow does not log why a task is skipped.
            self.log.info("Nothing is pushed: %s", early.without_advice)
            raise AirflowSkipException(early.without_advice) from early
        self.log.info(
            "%s uses token %s now, until %s; before: token %s, until %s at the latest. Push again by %s",
            *(self.application, pushed.new.sequence_number, pushed.end),
            *(pushed.old.sequence_number, pushed.old_end, pushed.again_by),
        )
        return pushed.to_json()

    def _push(self) -> HandPush:
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            who = self._identity() or cluster.watcher
            with open_session(cluster, who) as session:
                binary = find_spark_submit(self.spark_submit)
                return push_by_hand(session, self.application, binary, shorten=self.shorten)

    def _identity(self) -> Identity | None:
        if bool(self.principal) != bool(self.keytab):
            raise InvalidInput("give principal and keytab together, or neither of them")
        return Identity(self.principal, self.keytab) if self.principal else None
