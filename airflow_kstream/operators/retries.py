"""Airflow's retries of our tasks: what a retry can't help fails at once."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR
from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout

from airflow_kstream.model.errors import CredentialError, KstreamError, StreamEnded

if TYPE_CHECKING:
    from airflow.sdk import Context

# Errors that end although the same call would fail again, by the subject of "does so meanwhile".
_ENDED_BY_OTHERS: dict[type[KstreamError], str] = {
    CredentialError: "a renewal of the ticket or a rotation of the keytab may end this meanwhile",
    StreamEnded: "the next try watches the stream and waits for its successor",
}


class RetryIfItHelps(RetryPolicy):
    """A retry policy that asks the error: one that a retry can't help fails the task at once.

    A CredentialError is retried like any error that is not ours, because the DAG of the tickets may end it, and so is
    StreamEnded, because the next try keeps the stream. The task's `retries` and `retry_delay` hold for all of them.
    """

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Return what follows this error. The reason is logged and kept with the task."""
        if not isinstance(exception, KstreamError):
            return RetryDecision.default()
        by_others = next((why for kind, why in _ENDED_BY_OTHERS.items() if isinstance(exception, kind)), None)
        if by_others:
            return RetryDecision.retry(reason=by_others)
        kind = type(exception).__name__
        if exception.retryable:
            return RetryDecision.retry(reason=f"{kind}: retrying may help")
        return RetryDecision.fail(reason=f"{kind}: retrying will not help")


RETRY_IF_IT_HELPS = RetryIfItHelps()


class KstreamOperator(BaseOperator):
    """The base of the operators.

    :param retry_policy: by default an error that a retry can't help fails the task at once; None leaves that to
        `retries` alone.
    """

    def __init__(self, *, retry_policy: RetryPolicy | None = RETRY_IF_IT_HELPS, **kwargs: Any) -> None:
        super().__init__(retry_policy=retry_policy, **kwargs)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Resume after a deferral, as Airflow asks for it.

        Raises KstreamError: when Airflow could not run the trigger, or asks for what this release does not have. Both
        happen to a task that another release deferred; its retry starts over and needs nothing of the deferral.
        """
        try:
            if next_method != TRIGGER_FAIL_REPR:
                inspect.signature(getattr(self, next_method)).bind(context, **(next_kwargs or {}))
        except (AttributeError, TypeError) as error:
            raise _lost(f"this release can't resume with {next_method}: {error}") from error
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            raise
        except TaskDeferralError as error:
            raise _lost(f"its trigger failed or can't be read by this release: {error}") from error


def _lost(why: str) -> KstreamError:
    return KstreamError(
        f"{why}. The next try starts over, and finds what runs", tried="resume a deferred task"
    ).passing()
