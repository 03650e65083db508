"""Look at all streams of a cluster, or at the tokens that a declaration names, and fail for those that need a hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics, settings
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.links import PageLink
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.model.streams.event import EventKind, ToldSubject
from airflow_kstream.model.streams.plan import Refuse, Settled
from airflow_kstream.model.streams.stream_state import Unlooked
from airflow_kstream.operators.retries import KstreamOperator, wrong_input_is_final
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.policy.events.attention import (
    Hand,
    Look,
    Pending,
    hands,
    maybe_unwatched,
    pending,
    pending_from_json,
    token_hands,
    trouble_with_the_end,
    unwatched,
)
from airflow_kstream.policy.states.due import unlooked
from airflow_kstream.states.tasks import is_deferred, stored_look
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.told import ToldNotes
from airflow_kstream.supervise.streams.folder.registry import stream_names
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.tokens.expiry import watched_tokens
from airflow_kstream.triggers.notifying import signs_of

if TYPE_CHECKING:
    from airflow.sdk import Context

_PENDING = "pending_steps"


class FleetLookOperator(TellingOperator):
    """Look once at every stream of the connection's `state_dir`, and return those that need a hand, each with its way
    out.

    A stream needs one if its start or restart is blocked or overdue, its circuit breaker is open, it waits for a person
    who killed it, it is stalled or queued too long, writes no declared checkpoint, runs as it was declared before,
    falls into a freeze, is held although its credentials end, can't be read, or if nobody watches it. The last shows in
    two looks, where a step that was due in the earlier one is still due: so it keeps since when, among the notes of
    what was told. It shows earlier where a task is deferred and the newest look that was stored is older than three
    rounds, as where `[triggerer] capacity` is used up. Streams with one cause that is the cluster's, such as a freeze,
    need one hand together. The result (XCom) has at most 100 entries. Pages call a stream one that needs a hand by the
    same rules.

    It looks with the connection's own rights, as `kstream streams status` does, and changes nothing. It tells one event
    alone, `nobody_watches`: the tasks that watch the streams tell all others.

    Example::

        look = FleetLookOperator(task_id="look", cluster_conn_id="prod")
        NeedsAHandOperator.partial(task_id="hand").expand(hand=look.output)

    :param cluster_conn_id: the `kstream` connection.
    :raises Unavailable: when the cluster, or most of its streams, can't be seen.
    """

    template_fields = ("cluster_conn_id",)
    operator_extra_links = (PageLink(),)
    page = {"show": ""}  # noqa: RUF012  read by the link

    def __init__(self, *, cluster_conn_id: str, **kwargs: Any) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, **kwargs)

    def execute(self, context: Context) -> list[dict[str, str]]:
        """Look, and return what somebody has to do. Raises Unavailable: when most streams can't be seen."""
        with wrong_input_is_final(), self._session() as session:
            verdicts, now = Watch(session).round(stream_names(session)), session.hdfs.now()
            looks = {name: look_of(verdict, now) for name, verdict in verdicts.items()}
            _require_seen(looks)
            # Looks are stored with the time of the host that looked, which the NameNode's may differ from by minutes.
            late = self._unlooked(looks, datetime.now(UTC))
            looks = {name: replace(look, unlooked=late.get(name)) for name, look in looks.items()}
            waiting = self._waiting(session.told, looks, now)
        needed = hands(looks, waiting, now)
        undecided = maybe_unwatched(looks, waiting)
        self.tell(unwatched(looks, waiting, now), {EventKind.UNWATCHED}, "unwatched", undecided.__contains__)
        concerned = len({name for hand in needed for name in hand.streams})
        metrics.cluster_gauge("streams_in_need", float(concerned), self.cluster_conn_id)
        self._log_result(verdicts, needed, concerned)
        return [hand.to_json() for hand in needed]

    @contextmanager
    def _session(self) -> Iterator[ClusterSession]:
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            yield session

    def _unlooked(self, names: Iterable[str], now: datetime) -> dict[str, Unlooked]:
        """Return the streams whose task is deferred, and whose trigger does not look, as far as looks are stored."""
        states = {name: state for name in names if (state := stored_look(self.cluster_conn_id, name))}
        return {name: why for name, why in unlooked(states, now).items() if is_deferred(states[name].by)}

    def _waiting(self, notes: ToldNotes, looks: Mapping[str, Look], now: datetime) -> Mapping[str, Pending]:
        """Return what each stream waits for, and since when; kept for the next look where that changed.

        It is kept among the notes of our own user: who could write it could hold `nobody_watches` back.
        """
        subject = ToldSubject(settings.text("installation"), self.cluster_conn_id, key=_PENDING)
        before = pending_from_json(notes.kept(subject))
        waiting = pending(looks, before, now)
        if waiting != before:
            try:
                notes.keep(subject, {name: one.to_json() for name, one in waiting.items()})
            except KstreamError as error:
                self.log.warning("The due steps can't be kept, so the next look may count from zero: %s", error)
        return waiting

    def _log_result(self, verdicts: Mapping[str, Verdict], needed: tuple[Hand, ...], concerned: int) -> None:
        if freeze := next(filter(None, (verdict.people.freeze for verdict in verdicts.values())), ""):
            self.log.info("The cluster is %s", freeze)
        self.log.info("%s of %s streams need a hand", concerned, len(verdicts))
        for hand in needed:
            self.log.warning("%s", hand.sentence)


class NeedsAHandOperator(KstreamOperator):
    """Fail with the sentence of one hand that is needed, and its way out.

    It fails, and does not warn: a red square is all that the grid shows of a mapped task, and the state of the newest
    run is then the state of the fleet. It fails at once, since no retry helps.

    Example::

        look = TokenLookOperator(task_id="look", cluster_conn_id="prod", declared={"users": ["etl"]})
        NeedsAHandOperator.partial(task_id="hand").expand(hand=look.output)

    :param hand: an entry of the result of FleetLookOperator or of TokenLookOperator. It is not a template: it quotes
        servers.
    """

    def __init__(self, *, hand: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hand = hand

    @property
    def subject(self) -> str:
        """Return the name of the mapped task's instance."""
        return self.hand["subject"]

    def execute(self, context: Context) -> NoReturn:
        """Raises AirflowFailException: always."""
        raise AirflowFailException(Hand.from_json(self.hand).sentence)


def look_of(verdict: Verdict, now: datetime) -> Look:
    """Return what a verdict shows at `now`, as far as hands go."""
    signs, phase = signs_of(verdict, blind=False), verdict.step.phase if isinstance(verdict.step, Settled) else None
    if isinstance(verdict.step, Refuse):
        signs = replace(signs, start=replace(signs.start, refusal=verdict.why))
    hard = now + verdict.credentials.remaining if verdict.lives and verdict.credentials.remaining is not None else None
    plan = verdict.facts.horizon.plan if verdict.facts and verdict.facts.horizon else None
    return Look(
        signs,
        generation=verdict.generation,
        due=verdict.calls_for_action,
        shared=verdict.step is None and verdict.shared,
        environment=verdict.past.environment,
        ends=trouble_with_the_end(phase or "", verdict.credentials.horizon or "", plan, hard, now),
    )


def _require_seen(looks: Mapping[str, Look]) -> None:
    """Raises Unavailable: when most streams can't be seen, for a cause that may be the cluster's: it is one failure."""
    unseen = [look for look in looks.values() if look.shared]
    if len(unseen) * 2 > len(looks):
        why = unseen[-1].signs.why.removesuffix(" Retrying may help.")
        raise Unavailable(f"{len(unseen)} of {len(looks)} streams can't be seen: {why}")


class TokenLookOperator(KstreamOperator):
    """Look once at the tokens of applications that are not streams, and of credentials files, and return those that
    nobody can renew for much longer.

    An application's launch tokens are not visible from outside: their end is inferred from its start and from the
    lifetime that the cluster gives to a token, and is never later than the real one. One that outlives it makes its own
    tokens, and needs no hand. A file's tokens need one until the file is replaced. The result (XCom) has at most 100
    entries, which NeedsAHandOperator takes.

    What it does not do: it renews no token and stops no application. It sees the applications alone that the
    connection's principal may view.

    Example::

        look = TokenLookOperator(task_id="look", cluster_conn_id="prod", declared={"users": ["etl"], "within": "1d"})

    :param cluster_conn_id: the `kstream` connection.
    :param declared: the fields of a `TokenDeclaration`.
    """

    template_fields = ("cluster_conn_id", "declared")

    def __init__(self, *, cluster_conn_id: str, declared: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.declared = declared

    def execute(self, context: Context) -> list[dict[str, str]]:
        """Look, and return what somebody has to do. Raises Unavailable: when a server is away."""
        with wrong_input_is_final():
            declared = TokenDeclaration.from_mapping(self.declared)
            with (
                KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
                open_session(cluster, cluster.watcher) as session,
            ):
                seen = watched_tokens(session, declared)
        needed = token_hands(seen.tokens, seen.unread, seen.now, declared.within)
        self.log.info("%s tokens are watched; %s need a hand", len(seen.tokens) + len(seen.unread), len(needed))
        for hand in needed:
            self.log.warning("%s", hand.sentence)
        metrics.cluster_gauge("tokens_in_need", float(len(needed)), self.cluster_conn_id)
        return [hand.to_json() for hand in needed]
