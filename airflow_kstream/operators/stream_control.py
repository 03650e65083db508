"""A person's order on a stream, from Airflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.connection import AirflowSecrets
from airflow_kstream.links import PageLink
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.printable import printable
from airflow_kstream.model.streams.freeze import freeze_length
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.operators.retries import KstreamOperator, speaker, wrong_input_is_final
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import (
    SpecOf,
    claimed_spec,
    hold,
    known_spec,
    open_by_name,
    request_restart,
    set_desired,
    spec_of_any,
    start_from,
    what_falls_into_the_freeze,
)
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler

if TYPE_CHECKING:
    from airflow.sdk import Context


class Action(StrEnum):
    """An order that a person can give for a stream, or for all streams of a cluster."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    HOLD = "hold"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"


OF_THE_CLUSTER = frozenset({Action.FREEZE, Action.UNFREEZE})


class StreamControlOperator(KstreamOperator):
    """Write a person's order where every supervisor of the stream reads it: start, stop, restart or hold.

    The task that watches the stream carries the order out within its `watch.every`; where none watches, its DAG's next
    run does. Only a stop is carried out here as well, so that the task ends when the stream has stopped; if the servers
    are away, the order stands. While the cluster is frozen, a stop is refused, and other orders wait for its end; the
    log says until when. `freeze` and `unfreeze` concern all streams of the connection's `state_dir`.

    The order carries the name of the user who triggered the run by hand, else the id of this DAG, and the reason.

    It needs no retries: what could not be written is a failed task for the person who clicked.

    Example::

        StreamControlOperator(
            task_id="hold", cluster_conn_id="prod", action="hold", stream="orders", reason="Kafka is moved"
        )

    :param cluster_conn_id: the `kstream` connection.
    :param action: start, stop, restart, hold, freeze or unfreeze (templated).
    :param stream: the stream's name; empty for freeze and unfreeze (templated).
    :param reason: why; every supervisor shows it (templated).
    :param lasts: for how long to freeze, from now on, such as `4h`; at most 7d (templated).
    :param begins: where the next generation of what is started begins: empty for where it was left, `fresh` for
        no state at all, or the HDFS path of a state; a word for that generation alone (templated).
    :param streams: the streams that this task may control, submitted before or not; by default those that the
        `state_dir` knows.
    :raises AirflowFailException: when the input is wrong.
    """

    template_fields: Sequence[str] = ("action", "stream", "reason", "lasts", "begins")
    operator_extra_links = (PageLink(),)

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        action: str,
        reason: str,
        stream: str = "",
        lasts: str = "4h",
        begins: str = "",
        streams: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.action = action
        self.stream = stream
        self.reason = reason
        self.lasts = lasts
        self.begins = begins
        self.streams = None if streams is None else list(streams)

    @property
    def page(self) -> dict[str, str]:
        """Return what names the page of its stream; that of the fleet, if it speaks to all of them."""
        return {"cluster": self.cluster_conn_id, "stream": self.stream} if self.stream else {"show": ""}

    def execute(self, context: Context) -> str:
        """Write the order, and return what it did in a sentence."""
        with wrong_input_is_final():
            action, reason, by = self._action(), self._reason(), speaker(context)
            subject = printable(self.stream) or self.cluster_conn_id
            self.log.info("%s wants to %s %s: %s", by, action, subject, reason)
            if action in OF_THE_CLUSTER:
                said = self._on_cluster(action, reason, by)
            else:
                said = self._on_stream(action, self._checked_stream(action), reason, by)
        self.log.info("%s", said)
        return said

    def _action(self) -> Action:
        try:
            return Action(self.action)
        except ValueError:
            raise InvalidInput(f"action is {printable(self.action)!r}; allowed are {', '.join(Action)}") from None

    def _reason(self) -> str:
        reason = printable(self.reason.strip())
        if not reason:
            raise InvalidInput("reason is empty; the next person will ask why")
        return reason

    def _checked_stream(self, action: Action) -> str:
        if self.streams is not None and self.stream not in self.streams:
            there = ", ".join(self.streams) or "none"
            raise InvalidInput(f"stream is {printable(self.stream)!r}; this task may {action} one of: {there}")
        return self.stream

    def _on_cluster(self, action: Action, reason: str, by: str) -> str:
        lasts = freeze_length("lasts", self.lasts) if action is Action.FREEZE else timedelta()
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            freezes = FreezeStore(session, by)
            if action is Action.UNFREEZE:
                freezes.lift(reason)
                return f"the streams of {cluster.state_dir} are not frozen any longer"
            freeze = freezes.freeze(lasts, reason)
            self._warn(session)
            return f"every stream of {cluster.state_dir} is {freeze}"

    def _warn(self, session: ClusterSession) -> None:
        try:
            for line in what_falls_into_the_freeze(session):
                self.log.warning("%s", line)
        except KstreamError as error:
            # The order stands; which streams it concerns is only news.
            self.log.warning("which streams end meanwhile can't be seen now: %s", error.without_advice)

    def _on_stream(self, action: Action, stream: str, reason: str, by: str) -> str:
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_by_name(cluster, stream, self.log.warning, self._spec_of(action)) as (session, known),
        ):
            spec = known.spec
            run = StreamRun(session, spec, engine_of(spec), AirflowSecrets(), by=by, declared=known.submittable)
            said = self._say(run, action, reason)
            return f"{stream}: {self._stopped(run, said) if action is Action.STOP else said}"

    def _spec_of(self, action: Action) -> SpecOf:
        """Return what finds its spec: there is nothing to restart of a stream that was never submitted."""
        if action is Action.RESTART:
            return claimed_spec
        return known_spec if self.streams is None else spec_of_any

    def _say(self, run: StreamRun, action: Action, reason: str) -> str:
        freeze = run.freeze()
        if freeze.holds(run.session.hdfs.now()):
            frozen = f"the cluster is {freeze}"
            if action is Action.STOP:
                refused = Conflict(f"{frozen}; unfreeze it first", tried=f"stop {run.spec.name}")
                raise refused.passing(not freeze.doubt)
            self.log.warning("%s: %s", run.spec.name, frozen)
        if action is Action.START and self.begins:
            fresh = self.begins == FRESH
            start_from(run, reason, path="" if fresh else self.begins, fresh=fresh)
            return f"its desired state is running, and its next generation begins with {self.begins}"
        return _WORDS[action](run, reason)

    def _stopped(self, run: StreamRun, said: str) -> str:
        """Stop it now; a supervisor that does the same at the same moment does no harm."""
        try:
            report = Reconciler(run, tell=self.log.info, may_submit=False, patient=False).run()
        except Unavailable as error:
            self.log.warning("%s", error)
            return f"{said}; the task that watches it stops it once the servers answer"
        return report.why


# What begins with no state at all.
FRESH = "fresh"


def _start(run: StreamRun, reason: str) -> str:
    set_desired(run, DesiredState.RUNNING, reason)
    return "its desired state is running"


def _stop(run: StreamRun, reason: str) -> str:
    set_desired(run, DesiredState.STOPPED, reason)
    return "its desired state is stopped"


def _restart(run: StreamRun, reason: str) -> str:
    return f"generation {request_restart(run, reason)} is to be replaced"


def _hold(run: StreamRun, reason: str) -> str:
    return f"held; {hold(run, reason)}"


_WORDS: Mapping[Action, Callable[[StreamRun, str], str]] = {
    Action.START: _start,
    Action.STOP: _stop,
    Action.RESTART: _restart,
    Action.HOLD: _hold,
}
