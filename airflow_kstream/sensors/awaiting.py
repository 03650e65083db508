"""The base of the sensors: one poll on the worker, then a wait in the triggerer or on the worker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_kstream.hooks.connection import read_connection
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.printable import storable
from airflow_kstream.operators.retries import RETRY_IF_IT_HELPS, argument_of
from airflow_kstream.triggers.awaiting import is_transient, raise_error, raise_event

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.definitions.retry_policy import RetryPolicy

    from airflow_kstream.triggers.awaiting import PollingTrigger


class AwaitingSensor(BaseSensorOperator):
    """A sensor that waits in the triggerer (`deferrable`) or on a worker, with the same result.

    An error that a retry can't help fails the task at once.

    Example::

        class TokenFileSensor(AwaitingSensor):
            def poll(self):
                return Path("/run/etl.tokens").exists(), {}

            def trigger(self):
                return TokenExpiryTrigger(self.cluster_conn_id, file="/run/etl.tokens", within="1d", poll_interval=60.0)

        TokenFileSensor(task_id="there", cluster_conn_id="prod", deferrable=False)
    """

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        deferrable: bool,
        retry_policy: RetryPolicy | None = RETRY_IF_IT_HELPS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**argument_of(retry_policy), **kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.deferrable = deferrable

    @abstractmethod
    def poll(self) -> tuple[bool, dict[str, Any]]:
        """Return whether the awaited thing has come, and the report. Raises KstreamError: when the poll fails."""

    @abstractmethod
    def trigger(self) -> PollingTrigger:
        """Return the trigger that takes over the polling."""

    def execute(self, context: Context) -> Any:
        """Poll once, then wait in the triggerer or here.

        Raises Unavailable: when Airflow returns no connection at the start; later, that is waited out.
        """
        with self._skip_if_soft():
            read_connection(self.cluster_conn_id)
        if not self.deferrable:
            return super().execute(context)
        with self._skip_if_soft():
            result = self.poke(context)
        return result.xcom_value if result else self._wait()

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the trigger's report, or raise the error that ended its wait."""
        with self._skip_if_soft():
            if "error" in event:
                raise_event(event)
        report: dict[str, Any] = event["report"]
        return report

    def poke(self, context: Context) -> PokeReturnValue:
        """Poll once. Log an error that waiting can resolve, and raise any other."""
        try:
            has_come, report = self.poll()
        except KstreamError as error:
            if not is_transient(error):
                raise_error(error)
            self.log.warning("%s", error)
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=has_come, xcom_value=storable(report))

    @contextmanager
    def _skip_if_soft(self) -> Iterator[None]:
        """Skip instead of failing if the task wants that, as Airflow does around the pokes on a worker."""
        try:
            yield
        except (AirflowFailException, KstreamError) as error:
            if self.never_fail or (self.soft_fail and isinstance(error, AirflowFailException)):
                raise AirflowSkipException(str(error)) from error
            raise

    def _wait(self) -> NoReturn:
        self.defer(trigger=self.trigger(), method_name="resume", timeout=timedelta(seconds=self.timeout))
