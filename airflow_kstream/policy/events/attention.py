"""The streams and the watched tokens that need a hand, and the way out for each.

One look shows what is wrong with a stream, in the kinds of its events. Whether anybody watches it takes two looks: a
step that is due, and is still due much later, has nobody who takes it. So each look keeps since when it saw that. A
deferred task whose own looks don't come shows it earlier: nothing has to be due. Tokens need a hand when nobody can
renew them for much longer, and when they can't be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Any

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.printable import storable
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import Obstacle, Phase
from airflow_kstream.model.streams.stream_state import Unlooked
from airflow_kstream.policy.events.signs import Signs, troubles

TOKEN, UNREAD = "token", "unread"
_OF_A_JOB = (
    "restart it before then, or declare it as a stream; if it makes its own tokens from a keytab, watch tags instead "
    "of its user"
)
_OF_A_FILE = "get new tokens and replace the file: `kstream tokens show` lists them"
_UNREAD = "give the connection's principal the right to see it, or declare it no longer"

UNSEEN, MORE = "unseen", "more"
# These are not events: a held stream whose credentials end, a DAG that is paused, a job that ended without success.
ENDS_HELD, PAUSED, ENDED = "ends_held", "paused", "ended"
# Hands that are listed one by one; a fleet that needs more of them has another problem than its streams.
MOST = 100
# Characters of a cause, and streams that one cause names.
_SHOWN, _NAMED = 400, 10
# What a person has to act for, the most urgent first. Any other kind is over by itself, or by a restart in time.
_WAYS_OUT: Mapping[str, str] = {
    EventKind.FROZEN: "`kstream streams unfreeze` lifts the freeze, if that must not wait",
    EventKind.UNWATCHED: "unpause its DAG and see that its task waits; without a DAG, `kstream streams stop {stream}`",
    EventKind.OVERDUE: "the log of its task tells why the restart does not come; if it has no task, unpause its DAG",
    EventKind.BLOCKED: "remove what stands in the way; its task then goes on by itself",
    EventKind.BREAKER: "repair the cause, then `kstream streams start {stream}` closes the circuit breaker",
    EventKind.ENVIRONMENT: "repair it; the streams then start again by themselves",
    EventKind.KILLED: "`kstream streams start {stream}` lets it run again, `kstream streams stop {stream}` gives it up",
    UNSEEN: "remove the cause: until then nobody restarts the stream in time",
    EventKind.BLIND: "remove the cause: until then nobody restarts the stream in time",
    ENDS_HELD: "`kstream streams start {stream}`: its task then replaces it once that is due",
    ENDED: "repair the cause, then `kstream streams start {stream}` lets it run again",
    PAUSED: "unpause its DAG",
    EventKind.STALLED: "`kstream streams evidence {stream}` says what hangs; "
    "`kstream streams restart {stream}` replaces the generation",
    EventKind.STARVING: "mend what YARN's words above name; where they name a token, or there are none, "
    "`kstream streams restart {stream}` replaces the generation, with fresh tokens",
    EventKind.CHANGED: "restore it, or find out who writes it; nothing follows this generation until a person decides",
    EventKind.QUEUED: "make room in its queue, or name another one in its declaration",
    EventKind.NO_CHECKPOINT: "declare the checkpoint that the job writes",
    EventKind.FORMER_SPEC: "correct its declaration: a generation of it failed",
}
# The same for what needs no hand.
_CALM: Mapping[str, str] = {
    EventKind.NOT_REPLACEABLE: "nothing, if a person is there when it loses one; "
    "`kstream streams restart {stream}` in quiet hours brings fresh tokens",
    EventKind.KEEPER: "`kstream streams status {stream}` has its keeper's last word, and the log of its leading "
    "process the cause, in lines with kstream",
    EventKind.KEYTAB_ROTATED: "put the new keytab where its declaration says: its task then restarts it before its "
    "credentials end; `kstream tickets check` says when that is",
    EventKind.NOT_REFRESHED: "nothing, if it may be restarted: that comes before its tokens end; "
    "`kstream streams status {stream}` says what is wrong with the pushes",
}
_URGENCY = {kind: number for number, kind in enumerate(_WAYS_OUT)}
# The cause is the cluster's, and one act of one person ends it for all.
_OF_THE_CLUSTER = (EventKind.FROZEN, EventKind.ENVIRONMENT)
# These say why a step is not taken although a task waits; any other trouble may be one that nobody hears of.
_EXPLAIN = {EventKind.FROZEN, EventKind.BLOCKED, EventKind.BREAKER, EventKind.ENVIRONMENT, EventKind.KILLED}


@dataclass(frozen=True)
class Patience:
    """The time after which a step that is due has nobody who takes it.

    Streams that are due together start one after the other, at most ten a minute, so each of them adds to it.
    """

    least: timedelta = timedelta(minutes=20)
    each: timedelta = timedelta(seconds=6)

    def of(self, due: int) -> timedelta:
        return self.least + due * self.each


@dataclass(frozen=True)
class Look:
    """One look at a stream.

    `due` is whether a step is due that a task has to take. `shared` is whether, without a conclusion, the cause may be
    the cluster's. `environment` is what ended it without its own fault. `ends` is the kind of trouble with the end of
    its credentials, empty if there is none: see `trouble_with_the_end`. `unlooked` is set if its task is deferred, and
    nobody looks for it.
    """

    signs: Signs
    generation: int = 0
    due: bool = False
    shared: bool = False
    environment: str = ""
    ends: str = ""
    unlooked: Unlooked | None = None


@dataclass(frozen=True)
class Pending:
    """A wait of a stream `since` then: for a step of this generation to be taken, or to be seen."""

    kind: str
    generation: int
    since: datetime

    def to_json(self) -> list[Any]:
        return [self.kind, self.generation, self.since.isoformat()]


@dataclass(frozen=True)
class Hand:
    """An act that somebody has to do. `subject` is a stream's name, or the number of streams with one cause."""

    subject: str
    kind: str
    why: str
    way_out: str
    streams: tuple[str, ...] = field(default=(), repr=False)

    @property
    def sentence(self) -> str:
        return f"{self.subject}: {self.why}. Way out: {self.way_out}"

    def to_json(self) -> dict[str, str]:
        """Return plain data of bounded size."""
        hand = {"subject": self.subject, "kind": self.kind, "why": self.why, "way_out": self.way_out}
        return {name: storable(words) for name, words in hand.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Hand:
        """Read what `to_json` wrote."""
        return cls(data["subject"], data["kind"], data["why"], data["way_out"])


def pending_from_json(data: object) -> dict[str, Pending]:
    """Read what an earlier look kept. What can't be read is left out, so it is seen for the first time."""
    read = {}
    for name, item in data.items() if isinstance(data, Mapping) else ():
        try:
            kind, generation, since = item
            pending = Pending(str(kind), int(generation), datetime.fromisoformat(since))
        except (TypeError, ValueError):
            continue
        if pending.since.tzinfo:
            read[str(name)] = pending
    return read


def pending(looks: Mapping[str, Look], before: Mapping[str, Pending], now: datetime) -> dict[str, Pending]:
    """Return what each stream waits for now. `before` is what the last look kept; a future time counts as now."""
    kept = {}
    for name, look in looks.items():
        if kind := _waits_for(look):
            new = Pending(kind, look.generation, now)
            old = before.get(name, new)
            kept[name] = old if (old.kind, old.generation) == (kind, look.generation) and old.since <= now else new
    return kept


def hands(
    looks: Mapping[str, Look], waiting: Mapping[str, Pending], now: datetime, patience: Patience = Patience()
) -> tuple[Hand, ...]:
    """Return the hands that are needed, the most urgent first, at most MOST: the last one then tells of the rest."""
    needed = list(_needed(looks, waiting, now, patience))
    together = _by_cause([hand for hand in needed if hand.kind in _OF_THE_CLUSTER])
    alone = [hand for hand in needed if hand.kind not in _OF_THE_CLUSTER]
    ordered = sorted([*together, *alone], key=lambda hand: (_URGENCY[hand.kind], hand.subject))
    return at_most(ordered, "`kstream streams status` tells of each")


def unwatched(
    looks: Mapping[str, Look], waiting: Mapping[str, Pending], now: datetime, patience: Patience = Patience()
) -> tuple[Trouble, ...]:
    """Return a trouble for each stream that nobody watches, however many hands are needed."""
    needed = _needed(looks, waiting, now, patience)
    return tuple(
        Trouble(EventKind.UNWATCHED, hand.why, hand.subject) for hand in needed if hand.kind == EventKind.UNWATCHED
    )


def maybe_unwatched(looks: Mapping[str, Look], waiting: Mapping[str, Pending]) -> frozenset[str]:
    """Return the streams of which this look can't say that somebody watches them: an event that began lasts."""
    unseen = (name for name, look in looks.items() if not look.signs.concluded)
    due = (name for name, pending in waiting.items() if pending.kind == EventKind.UNWATCHED)
    return frozenset((*unseen, *due))


def most_urgent(kinds: Iterable[str]) -> str:
    """Return the kind that somebody has to act for first, empty if nobody has to act for any.

    Whether a stream needs a hand is decided here alone: for the fleet's DAG by a look, for pages by what was stored.
    """
    return min((kind for kind in kinds if kind in _URGENCY), key=_URGENCY.__getitem__, default="")


def trouble_with_the_end(state: str, reason: str, plan: datetime | None, hard: datetime | None, now: datetime) -> str:
    """Return the kind of trouble if nobody restarts a stream although its credentials end, empty if there is none.

    `plan` is when its restart window begins, `hard` when its credentials end. A held stream is never restarted, so for
    it the window counts; a horizon that is only a wish kills nothing.
    """
    if hard is None:
        return ""
    if state != Phase.HELD:
        return EventKind.OVERDUE if hard <= now else ""
    due = reason != HorizonReason.POLICY_MAX_AGE.value and min(plan or hard, hard) <= now
    return ENDS_HELD if due else ""


def way_out(kind: str, stream: str) -> str:
    """Return what to do about a trouble of this kind, in words; empty if it is not the stream's own."""
    return {**_CALM, **_WAYS_OUT}.get(kind, "").format(stream=stream)


def at_most(ordered: Sequence[Hand], way_out: str) -> tuple[Hand, ...]:
    """Return all of them or, if they are more than MOST, the first ones and one that names the rest."""
    return tuple(ordered) if len(ordered) <= MOST else (*ordered[: MOST - 1], _rest(ordered[MOST - 1 :], way_out))


def _needed(
    looks: Mapping[str, Look], waiting: Mapping[str, Pending], now: datetime, patience: Patience
) -> Iterator[Hand]:
    longest = patience.of(sum(look.due for look in looks.values()))
    for name, look in looks.items():
        yield from _hands_of(name, look, waiting.get(name), now, longest)


def _waits_for(look: Look) -> str:
    if look.unlooked:
        return EventKind.UNWATCHED
    if not look.signs.concluded:
        return UNSEEN if look.shared else ""
    return EventKind.UNWATCHED if look.due else ""


def _hands_of(name: str, look: Look, waits: Pending | None, now: datetime, longest: timedelta) -> Iterator[Hand]:
    """Yield the most urgent hand that a stream needs; the others may be over with it."""
    causes = dict(_causes(look))
    if look.unlooked:
        if waits and now - waits.since >= look.unlooked.patience:
            causes[waits.kind] = f"nobody seems to watch it: {look.unlooked.why}"
    elif not _EXPLAIN & causes.keys() and waits and now - waits.since >= longest:
        causes[waits.kind] = _unanswered(look, waits)
    if kind := most_urgent(causes):
        why = shorten(causes[kind], _SHOWN, placeholder="…").rstrip(".")
        yield Hand(name, str(kind), why, _WAYS_OUT[kind].format(stream=name), (name,))


def _causes(look: Look) -> Iterator[tuple[str, str]]:
    signs = look.signs
    if not signs.concluded:
        if not look.shared:
            yield UNSEEN, signs.why
        return
    if signs.start.blocked and signs.start.blocked.by is Obstacle.ENVIRONMENT:
        yield EventKind.ENVIRONMENT, look.environment or signs.start.blocked.why
    if look.ends:
        yield look.ends, signs.why
    for trouble in troubles(signs):
        yield trouble.kind, trouble.why


def _unanswered(look: Look, waits: Pending) -> str:
    since = f"since {waits.since:%Y-%m-%d %H:%M:%S} UTC"
    if waits.kind == UNSEEN:
        return f"it is not seen {since}: {look.signs.why}"
    return f"nobody seems to watch it: a step is due {since}, and nobody takes it: {look.signs.why}"


def _by_cause(shared: Sequence[Hand]) -> Iterator[Hand]:
    """Yield one hand for each cause: a freeze is one, whatever falls into it."""
    causes: dict[tuple[str, str], list[Hand]] = {}
    for hand in shared:
        cause = "" if hand.kind == EventKind.FROZEN else hand.why
        causes.setdefault((hand.kind, cause), []).append(hand)
    for (kind, _), alike in causes.items():
        if len(alike) == 1:
            yield alike[0]
            continue
        names = [hand.subject for hand in alike]
        why = shorten(f"{_few(names)}: {alike[0].why}", _SHOWN + 60 * _NAMED, placeholder="…")
        yield Hand(f"{len(alike)} streams", kind, why, alike[0].way_out, tuple(names))


def _rest(hands: Sequence[Hand], way_out: str) -> Hand:
    names = [name for hand in hands for name in hand.streams]
    why = f"they need a hand, too: {_few(names)}"
    return Hand(f"{len(names)} more", MORE, why, way_out, tuple(names))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


@dataclass(frozen=True)
class WatchedToken:
    """A token of `subject`, an application's id or a file, and the time after which nobody can renew it.

    `whose` tells people more about it. A file's tokens are needed for as long as the file is declared; an application
    that outlives the tokens of its launch makes its own, or has no use for any.
    """

    subject: str
    whose: str
    end: datetime
    in_file: bool = False


def token_hands(
    tokens: Iterable[WatchedToken], unread: Mapping[str, str], now: datetime, within: timedelta
) -> tuple[Hand, ...]:
    """Return the hands that are needed, the nearest end first; `unread` are subjects with the reasons.

    In a file with several tokens the first one to end counts.
    """
    first: dict[str, WatchedToken] = {}
    for token in sorted(tokens, key=lambda token: (token.end, token.subject)):
        first.setdefault(token.subject, token)
    due = [_hand(token, now) for token in first.values() if _is_due(token, now, within)]
    broken = [Hand(subject, UNREAD, why, _UNREAD, (subject,)) for subject, why in sorted(unread.items())]
    return at_most([*due, *broken], "`kstream tokens show` tells of each")


def _is_due(token: WatchedToken, now: datetime, within: timedelta) -> bool:
    left = token.end - now
    return left <= within and (token.in_file or left > timedelta())


def _hand(token: WatchedToken, now: datetime) -> Hand:
    left = token.end - now
    end, them = ("ends", "it") if token.in_file else ("end", "them")
    when = f"{end} in {format_duration(left)}" if left > timedelta() else f"ended {format_duration(-left)} ago"
    why = f"{token.whose} {when} ({token.end:%Y-%m-%d %H:%M:%S} UTC), and nobody can renew {them} beyond that"
    return Hand(token.subject, TOKEN, why, _OF_A_FILE if token.in_file else _OF_A_JOB, (token.subject,))
