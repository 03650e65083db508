"""The base of our operators: which errors a retry can help, who speaks by a task, and what keeps a watching task alive.

An error that no retry can help fails the task at once: wrong input of an operator, and what a retry policy sorts out.
`speaker` and `person` name who gives a task's order. A task that watches does so for as long as its DAG is there:
default arguments don't end it, and it warns of a DAG without a schedule.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR
from airflow.sdk.exceptions import AirflowFailException, TaskDeferralError, TaskDeferralTimeout

from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, StreamEnded

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
else:
    try:
        from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
    except ImportError:
        # Before Airflow 3.3 no task asks a policy.
        RetryPolicy = object

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
        kind = type(exception).__name__
        if reason := _hope(exception):
            return RetryDecision.retry(reason=reason)
        return RetryDecision.fail(reason=f"{kind}: retrying will not help")


def _hope(error: KstreamError) -> str:
    """Return why another try may succeed; empty if it can't."""
    by_others = next((why for kind, why in _ENDED_BY_OTHERS.items() if isinstance(error, kind)), "")
    return by_others or (f"{type(error).__name__}: retrying may help" if error.retryable else "")


RETRY_IF_IT_HELPS = RetryIfItHelps()
_IS_ASKED = RetryPolicy is not object


def argument_of(policy: RetryPolicy | None) -> dict[str, Any]:
    """Return the argument that gives a task this policy; none where Airflow's tasks take none."""
    return {"retry_policy": policy} if _IS_ASKED else {}


def hopeless_is_final(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Let this method fail its task at once, in Airflow's own way, with an error that a retry can't help."""

    @wraps(execute)
    def executed(task: KstreamOperator, *args: Any, **kwargs: Any) -> Any:
        try:
            return execute(task, *args, **kwargs)
        except KstreamError as error:
            if _hope(error) or not task.fails_at_once:
                raise
            raise AirflowFailException(str(error)) from error

    return executed


class KstreamOperator(BaseOperator):
    """The base of the operators.

    Example::

        class SafeModeOperator(KstreamOperator):
            def execute(self, context):
                with KstreamClusterHook("prod").cluster() as cluster, open_session(cluster, cluster.watcher) as session:
                    return session.hdfs.now().isoformat()

    :param retry_policy: by default an error that a retry can't help fails the task at once; None leaves that to
        `retries` alone.
    """

    def __init__(self, *, retry_policy: RetryPolicy | None = RETRY_IF_IT_HELPS, **kwargs: Any) -> None:
        super().__init__(**argument_of(retry_policy), **kwargs)
        self.fails_at_once = retry_policy is not None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not _IS_ASKED and "execute" in cls.__dict__:
            cls.execute = hopeless_is_final(cls.execute)  # type: ignore[method-assign]

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
            return self._resume(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            raise
        except TaskDeferralError as error:
            raise _lost(f"its trigger failed or can't be read by this release: {error}") from error

    def _resume(self, *given: Any) -> Any:
        return super().resume_execution(*given)

    if not _IS_ASKED:
        _resume = hopeless_is_final(_resume)


def _lost(why: str) -> KstreamError:
    return KstreamError(
        f"{why}. The next try starts over, and finds what runs", tried="resume a deferred task"
    ).passing()


@contextmanager
def wrong_input_is_final() -> Iterator[None]:
    """Raises AirflowFailException: in place of InvalidInput, because a retry would read the same input again."""
    try:
        yield
    except InvalidInput as error:
        raise AirflowFailException(str(error)) from error


def person(context: Context) -> str | None:
    """Return the user who triggered this run by hand; None for any other run.

    A run that another DAG's task triggered inherits that run's user name, who did not ask for this one.
    """
    run = context["dag_run"]
    return run.triggering_user_name if run.run_type == "manual" else None


def speaker(context: Context) -> str:
    """Return who gives a task's order: the `person`, else its DAG. Never a value of the run's form."""
    return person(context) or f"DAG {context['dag_run'].dag_id}"


# `default_args` are meant for tasks that end. Each failure of a job takes one try, and none may be the last.
_WATCHES_ON: Mapping[str, Any] = {
    "retries": 10_000,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": 0,
    "max_retry_delay": None,
    "execution_timeout": None,
    "depends_on_past": False,
    "wait_for_downstream": False,
    **argument_of(RETRY_IF_IT_HELPS),
}
_NO_SCHEDULE = (
    "This DAG has no schedule that repeats: no run follows one that ended or that somebody marked, and then nobody "
    'watches its stream. Add to the DAG: `schedule="*/5 * * * *", max_active_runs=1, catchup=False`'
)


class UnendingOperator(KstreamOperator):
    """The base of an operator whose task watches on after each failure, whatever `default_args` say.

    Its own arguments count. Those of `default_args` don't that would end the watch: `retries`, `retry_delay`,
    `retry_exponential_backoff`, `max_retry_delay`, `execution_timeout`, `depends_on_past`, `wait_for_downstream` and
    `retry_policy`. Since no failure is the last one, `on_failure_callback` is called for each where neither `retries`
    nor `on_retry_callback` is given. A DAG without a schedule that repeats starts no other run after a person marked or
    deleted one, or after the job ended successfully: a warning where the DAG is parsed, and the DAG's doc, name the
    line to add.

    Example::

        class WaitsOperator(UnendingOperator):
            def execute(self, context):
                self.defer(trigger=StreamTrigger("prod", "orders", 30.0), method_name="resume")
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**_WATCHES_ON, **kwargs})
        if "retries" not in kwargs and not self.on_retry_callback:
            # Airflow calls it after the last failure alone, and there is none.
            self.on_retry_callback = self.on_failure_callback
        _ask_for_schedule(self.get_dag())

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """Return the operator for `expand`, as Airflow's own does: it makes no instance where the DAG is parsed."""
        made = super().partial(**{**_WATCHES_ON, **kwargs})
        if "retries" not in kwargs and not made.kwargs.get("on_retry_callback"):
            # As above: an instance gets these retries as if its author had given them.
            made.kwargs["on_retry_callback"] = made.kwargs.get("on_failure_callback") or ()
        _ask_for_schedule(made.kwargs.get("dag"))
        return made

    def tell_author(self, what: str) -> None:
        """Show what is wrong with this task where its DAG is parsed, and in the DAG's doc."""
        _tell(self.get_dag(), f"Task `{self.task_id}`: {what}")

    @staticmethod
    def is_a_test() -> bool:
        """Return whether `airflow dags test` or `airflow tasks test` runs this task: in its own process, which runs the
        trigger, too, and would do so for as long as the stream lives."""
        runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
        return type(getattr(runner, "SUPERVISOR_COMMS", None)).__name__ == "InProcessSupervisorComms"

    def is_followed(self, context: Context) -> bool:
        """Return whether another try or another run watches on after this try fails."""
        dag, ti = self.get_dag(), context["ti"]
        return dag is None or _is_scheduled(dag) or ti.try_number <= ti.max_tries


def _is_scheduled(dag: Any) -> bool:
    # An empty list is one of assets that nothing ever updates.
    return dag.schedule not in (None, "@once", [], ())


def _ask_for_schedule(dag: DAG | None) -> None:
    if dag is not None and not _is_scheduled(dag) and _NO_SCHEDULE not in (dag.doc_md or ""):
        _tell(dag, _NO_SCHEDULE)


def _tell(dag: DAG | None, text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)
    if dag is not None:
        dag.doc_md = "\n\n".join(filter(None, (dag.doc_md, text)))
