"""Wait until a delegation token is about to reach its max date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import CredentialError, KstreamError
from airflow_kstream.supervise.access import open_access
from airflow_kstream.supervise.token_expiry import TokensAwaited, TokenWatch
from airflow_kstream.triggers.shared import may_pass, raise_error, with_remedy
from airflow_kstream.triggers.tokens import TokenExpiryTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class DelegationTokenExpirySensor(BaseSensorOperator):
    """Wait until a delegation token has at most `within` left before its max date, beyond which nobody can renew it.

    Of a credentials file the dates stand in the file. The tokens of a stream's generation or of an application are
    seen by nobody outside of it: theirs are known from when it was submitted, never later than the truth, and from
    how long this cluster lets tokens live, which it was asked. The result (XCom) has which token and when, at most 20.

    What it does not do: it renews no token, and does not ask whether one was cancelled or not renewed in time
    (`kstream tokens show` does). A job that makes its own tokens from its keytab is refused: those of its launch are
    not its end. A server that is away, or a file or stream that is not there yet, ends no wait; `timeout` does.

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param file: a credentials file, as an absolute path on worker and triggerer or as an hdfs:// URI. One of `file`,
        `stream` and `application` is needed.
    :param stream: a stream's name; its running generation is meant, at each look.
    :param application: the id of an application that runs.
    :param within: a duration such as `1d`.
    :param deferrable: wait in the triggerer and hold no worker slot.
    :raises AirflowFailException: what no waiting and no retry can change.
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
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.file = file
        self.stream = stream
        self.application = application
        self.within = within
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        """Look; then wait in the triggerer or here."""
        if not self.deferrable:
            return super().execute(context)
        seen = self.poke(context)
        return seen.xcom_value if seen else self._wait()

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """The trigger has seen it, or can't."""
        if "error" in event:
            raise_error(event)
        report: dict[str, Any] = event["report"]
        return report

    def poke(self, context: Context) -> PokeReturnValue:
        """One look. Raise what no waiting can change; whatever can is logged."""
        try:
            watch = self._watch_of_this_process()
            with (
                KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
                open_access(cluster, cluster.watcher) as access,
            ):
                seen = watch.look(access)
        except KstreamError as error:
            if may_pass(error):
                self.log.warning("%s", error)
                return PokeReturnValue(is_done=False)
            if isinstance(error, CredentialError):
                raise with_remedy(error) from error
            raise AirflowFailException(str(error)) from error
        self.log.info("%s: %d of %d tokens end in time", seen.awaited.source, len(seen.expiring), len(seen.ends))
        return PokeReturnValue(is_done=bool(seen.expiring), xcom_value=seen.report())

    def _watch_of_this_process(self) -> TokenWatch:
        # Not made with the operator, which is copied and serialized; and not at each look, some of which cost a token.
        if getattr(self, "_watch", None) is None:
            self._watch = TokenWatch(self._awaited())
        return self._watch

    def _wait(self) -> NoReturn:
        trigger = TokenExpiryTrigger(self.cluster_conn_id, self._awaited().to_mapping(), self.poke_interval)
        self.defer(trigger=trigger, method_name="resume", timeout=timedelta(seconds=self.timeout))

    def _awaited(self) -> TokensAwaited:
        return TokensAwaited.from_mapping(
            {
                "file": self.file or None,
                "stream": self.stream or None,
                "application": self.application or None,
                "within": self.within,
            }
        )
