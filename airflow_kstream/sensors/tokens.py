"""Wait until a delegation token is about to reach its max date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk.configuration import conf

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.sensors.awaiting import AwaitingSensor
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.tokens.expiry import TokenExpiryCondition, TokenWatch
from airflow_kstream.triggers.tokens import TokenExpiryTrigger


class DelegationTokenExpirySensor(AwaitingSensor):
    """A wait until a delegation token has at most `within` left before its max date, beyond which nobody can renew it.

    A credentials file contains the dates. The tokens of a stream's generation or of an application are not visible
    from outside: their dates are inferred from the submission time and from the token lifetimes that the cluster
    reports, and are never later than the real ones. The result (XCom) lists the tokens and their dates, at most 20.

    What it does not do: it renews no token, and does not check whether one was cancelled or not renewed in time
    (`kstream tokens show` does). It refuses a job that makes its own tokens from its keytab, since that job outlives
    the tokens of its launch. An unreachable server, or a file or stream that does not exist yet, does not end the
    wait; `timeout` does.

    Example::

        DelegationTokenExpirySensor(
            task_id="expiring", cluster_conn_id="prod", stream="orders", within="1d", deferrable=True
        )

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param file: a credentials file, as an absolute path on worker and triggerer or as an hdfs:// URI. One of `file`,
        `stream` and `application` is needed.
    :param stream: a stream's name; each poll takes the generation that runs at that time.
    :param application: the id of a running application.
    :param within: a duration such as `1d`.
    :param deferrable: wait in the triggerer and hold no worker slot.
    :raises AirflowFailException: when neither waiting nor retrying can help.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "file", "stream", "application", "within")

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        file: str | None = None,
        stream: str | None = None,
        application: str | None = None,
        within: str | timedelta = "1d",
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, deferrable=deferrable, **kwargs)
        self.file = file
        self.stream = stream
        self.application = application
        self.within = within

    def poll(self) -> tuple[bool, dict[str, Any]]:
        watch = self._watch_of_this_process()
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            check = watch.check(session)
        self.log.info("%s", check.words)
        return bool(check.due), check.report()

    def trigger(self) -> TokenExpiryTrigger:
        return TokenExpiryTrigger(self.cluster_conn_id, self._awaited().to_mapping(), self.poke_interval)

    def _watch_of_this_process(self) -> TokenWatch:
        # Not in __init__: Airflow copies and serializes an operator. Not at each poll: some cost a token.
        if getattr(self, "_watch", None) is None:
            self._watch = TokenWatch(self._awaited())
        return self._watch

    def _awaited(self) -> TokenExpiryCondition:
        return TokenExpiryCondition.from_mapping(
            {
                "file": self.file or None,
                "stream": self.stream or None,
                "application": self.application or None,
                "within": self.within,
            }
        )
