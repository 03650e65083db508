"""Tasks that watch for as long as their DAG is there: no default argument ends that, and no missing schedule unseen."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_kstream.operators.retries import RETRY_IF_IT_HELPS, KstreamOperator, argument_of

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context

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
