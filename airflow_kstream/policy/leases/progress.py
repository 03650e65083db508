"""All files of a recovery, and what is concluded from what was seen of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease_recovery import Outcome, Recovery, Target
from airflow_kstream.model.open_file import FileState
from airflow_kstream.policy.leases.circuit_breaker import CircuitBreaker
from airflow_kstream.policy.leases.concurrency import ConcurrencyLimit, ConcurrencyLimits
from airflow_kstream.policy.leases.file_recovery import FileRecovery, Stage
from airflow_kstream.policy.leases.judgement import LOST_LEASES
from airflow_kstream.policy.leases.limits import RecoveryLimits

_FIRST_POLL = timedelta(seconds=1)
_REVIEWS_TRIED = 3
# How far the NameNode's clock may be from ours.
_SKEW = timedelta(seconds=5)
_VANISHED = "its path vanished after recovery was asked for"


class RecoveryProgress:
    """Is told what was seen and said of files, and concludes; it decides nothing. Of two targets at a path the first
    counts. `epoch` is the time of day when the run began; all other times count from there.

    `queue` wants a first look, `ready` had it, `asked` is in flight, `reviews` wants a last look.
    """

    def __init__(self, targets: Iterable[Target], limits: RecoveryLimits, epoch: datetime) -> None:
        self._all: dict[str, FileRecovery] = {}
        for target in targets:
            self._all.setdefault(target.path, FileRecovery(target))
        self._limits = limits
        self._epoch = epoch
        self._left = len(self._all)
        self._ended: list[Recovery] = []
        self.breaker = CircuitBreaker(limits.safety, limits.timeouts)
        self.windows = ConcurrencyLimits(limits.concurrency)
        self.queue = deque(self._all.values())
        self.ready: list[FileRecovery] = []
        self.asked: dict[str, FileRecovery] = {}
        self.reviews: deque[FileRecovery] = deque()
        self.found_closed = 0

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def in_flight(self) -> tuple[str, ...]:
        """What was asked for, and what came of it is not known."""
        return tuple(case.path for case in self._all.values() if case.asked and case.end is None)

    def ended(self) -> list[Recovery]:
        """What has come to an end since this was asked last."""
        ended, self._ended = self._ended, []
        return ended

    def end_of(self, path: str) -> Recovery:
        """What came of a file that has ended."""
        end = self._all[path].end
        assert end is not None, f"{path} has not ended"
        return end

    # What was seen and said.

    def health_seen(self, now: timedelta, said: HdfsHealth | KstreamError) -> None:
        """After a failover what was begun before it is begun anew: the other NameNode knows nothing of it."""
        if not self.breaker.health_seen(now, said) or isinstance(said, KstreamError):
            return
        since = said.active_since - self._epoch if said.active_since else now
        for case in self.asked.values():
            if case.last_asked <= since + _SKEW:
                case.due = min(case.due, now)

    def looked(self, now: timedelta, path: str, said: FileState | KstreamError) -> None:
        case = self._all[path]
        if case.stage is Stage.ASKED:
            self._looked_again(now, case, said)
        elif case.stage is Stage.QUEUED and isinstance(said, FileState):
            self._found(now, case, said)
        elif case.stage is Stage.QUEUED and isinstance(said, KstreamError):
            self._not_found(now, case, said)

    def asking(self, now: timedelta, paths: Sequence[str]) -> None:
        """These are about to be asked for: from now on they may have been, whatever happens."""
        for path in paths:
            case = self._all[path]
            case.asked += 1
            case.stage = Stage.ASKED
            case.seen = None
            case.last_asked = now
            if case.requested_at is None:
                case.requested_at = case.polled = now
                case.next_poll = now + _FIRST_POLL
            self.asked[path] = case

    def requested(self, now: timedelta, path: str, said: bool | KstreamError) -> None:
        case = self._all[path]
        if case.stage is not Stage.ASKED:
            return
        case.due = now + self._limits.timeouts.before_retry(self.breaker.version, case.asked)
        if isinstance(said, KstreamError):
            self._refused(now, case, said)
        elif said:
            self._closed(now, case)
        else:
            case.accepted, case.failures = True, 0

    def answered_in(self, now: timedelta, seconds: float) -> None:
        """How long the NameNode took for an answer, on the average of a batch."""
        if timedelta(seconds=seconds) > self._limits.concurrency.slow_answer:
            self.windows.together.on_failure(now)

    def polled(self, now: timedelta, path: str, said: bool | KstreamError) -> None:
        case = self._all[path]
        if case.stage is not Stage.ASKED:
            return
        if said is True:
            self.found_closed += 1
            self._closed(now, case)
        elif isinstance(said, NotFound):
            self._end(case, Outcome.GONE, _VANISHED)
        elif self.breaker.stopped and not case.accepted:
            self._end(case, Outcome.UNCONFIRMED, f"recovery was asked for, and the answer was: {case.words}")
        else:
            case.polls_later(now, self._limits.timeouts.poll)

    def late(self, now: timedelta) -> None:
        """Time has passed: which of those in flight are slow, and which past their deadline."""
        for case in list(self.asked.values()):
            lasts = now - (case.requested_at or now)
            if lasts >= self._limits.timeouts.deadline:
                self._land(now, case, Stage.EXPIRED)
            elif lasts >= self._limits.concurrency.slow_close and not case.slow:
                case.slow = True
                self.windows.is_slow(now, case.slot)

    def reviewed(self, now: timedelta, path: str, said: FileState | KstreamError) -> None:
        case = self._all[path]
        if case.stage not in (Stage.CLOSED, Stage.EXPIRED):
            return
        if isinstance(said, KstreamError) and said.retryable and case.failures < _REVIEWS_TRIED:
            case.backs_off(now, self._limits.timeouts.poll)
            self.reviews.append(case)
        else:
            self._last_word(case, said)

    def give_up_queue(self, why: str) -> None:
        """What was not asked for yet won't be."""
        for case in self._all.values():
            if case.stage is Stage.QUEUED:
                self._end(case, Outcome.NOT_TRIED, why)

    def break_off(self, last_look: Iterable[tuple[str, FileState | KstreamError]]) -> None:
        """End everything now: what this look at `in_flight` doesn't show closed is unconfirmed."""
        for path, said in last_look:
            case = self._all[path]
            closed = isinstance(said, FileState) and not said.is_open and not case.difference(said)
            if case.end is None and (closed or isinstance(said, NotFound)):
                self._last_word(case, said)
        self.give_up_queue("the run was interrupted before its turn")
        for case in self._all.values():
            if case.stage is Stage.CLOSED:
                self._end(case, Outcome.CLOSED, "it is closed; its length was not asked for any more")
            elif case.end is None:
                self._end(case, Outcome.UNCONFIRMED, "the run was interrupted before its end was seen")

    # What is concluded.

    def _found(self, now: timedelta, case: FileRecovery, state: FileState) -> None:
        first_look, case.seen = case.seen is None, now
        if difference := case.difference(state):
            self._end(case, Outcome.CHANGED, difference)
        elif not state.is_open:
            self._end(case, Outcome.CLOSED if case.target.accepted else Outcome.ALREADY_CLOSED, after=state)
        elif first_look:
            case.before = state
            case.slot = self.windows.slot(state)
            self.ready.append(case)
            self._leave_alone_where_shut([case], case.slot.host)

    def _not_found(self, now: timedelta, case: FileRecovery, error: KstreamError) -> None:
        outcome = next((outcome for kind, outcome in _AT_FIRST_LOOK if isinstance(error, kind)), None)
        if outcome:
            self._end(case, outcome, _said(error))
            return
        case.first_failed = now if case.first_failed is None else case.first_failed
        if not error.retryable or now - case.first_failed >= self._limits.timeouts.deadline:
            self._end(case, Outcome.NOT_TRIED, f"its state can't be read: {_said(error)}")
            return
        self.windows.together.on_failure(now)
        case.backs_off(now, self._limits.timeouts.poll)
        if case.seen is None:
            self.queue.append(case)

    def _looked_again(self, now: timedelta, case: FileRecovery, said: FileState | KstreamError) -> None:
        if isinstance(said, NotFound):
            self._end(case, Outcome.GONE, _VANISHED)
        elif isinstance(said, KstreamError):
            case.backs_off(now, self._limits.timeouts.poll)
        elif difference := case.difference(said):
            self._end(case, Outcome.CHANGED, f"after recovery was asked for, {difference}")
        elif said.is_open:
            case.seen = now
        else:
            self._closed(now, case)

    def _refused(self, now: timedelta, case: FileRecovery, error: KstreamError) -> None:
        case.words = _said(error)
        lost = isinstance(error, Conflict) and any(words in error.message for words in LOST_LEASES)
        outcome = Outcome.LEAKED if lost else next((end for kind, end in _REFUSALS if isinstance(error, kind)), None)
        if outcome:
            self._end(case, outcome, case.words)
        elif isinstance(error, Conflict) or error.retryable:
            self.windows.together.on_failure(now)
            case.backs_off(now, self._limits.timeouts.poll)
        else:
            self._can_not_ask(case, error)

    def _can_not_ask(self, case: FileRecovery, error: KstreamError) -> None:
        self._end(case, Outcome.UNCONFIRMED if case.asked > 1 else Outcome.NOT_TRIED, case.words)
        if not isinstance(error, InvalidInput):
            self.breaker.stop(case.words)

    def _closed(self, now: timedelta, case: FileRecovery) -> None:
        self.windows.closed(now, case.slot)
        self.windows.give_back(case.slot)
        self._land(now, case, Stage.CLOSED)

    def _land(self, now: timedelta, case: FileRecovery, stage: Stage) -> None:
        case.stage = stage
        case.finished_at = now
        case.due, case.failures = now, 0
        self.asked.pop(case.path, None)
        self.reviews.append(case)

    def _last_word(self, case: FileRecovery, said: FileState | KstreamError) -> None:
        was_closed, state = case.stage is Stage.CLOSED, said if isinstance(said, FileState) else None
        if state and state.file_id != case.target.expected.file_id:
            self._end(case, Outcome.UNCONFIRMED, f"after recovery was asked for, {case.difference(state)}")
        elif state and not state.is_open:
            self._end(case, Outcome.CLOSED, after=state)
        elif was_closed:
            self._end(case, Outcome.CLOSED, _CLOSED_AND_GONE if isinstance(said, NotFound) else _CLOSED_SINCE)
        elif isinstance(said, NotFound):
            self._end(case, Outcome.GONE, _VANISHED)
        else:
            self._give_up(case, state)

    def _give_up(self, case: FileRecovery, state: FileState | None) -> None:
        self._end(case, Outcome.GAVE_UP, case.why_not_closed(state, self._limits.timeouts.deadline))
        if case.slot:
            host = case.slot.host
            host.given_up_in_a_row += 1
            self._leave_alone_where_shut(
                [ready for ready in self.ready if ready.slot and ready.slot.host is host], host
            )

    def _leave_alone_where_shut(self, cases: Iterable[FileRecovery], host: ConcurrencyLimit) -> None:
        if host.given_up_in_a_row >= self._limits.safety.in_a_row:
            why = f"DataNode {host.name or '(none)'} closed none of the last {host.given_up_in_a_row} that were tried"
            for case in cases:
                self._end(case, Outcome.NOT_TRIED, why)

    def _end(self, case: FileRecovery, outcome: Outcome, why: str = "", after: FileState | None = None) -> None:
        if case.end is not None:
            return
        if outcome is Outcome.NOT_TRIED and case.target.accepted:
            outcome, why = Outcome.UNCONFIRMED, f"asking for its holder began its recovery; {why}"
        case.end = case.recovery(outcome, why, after, self._epoch)
        case.stage = Stage.ENDED
        self._ended.append(case.end)
        self._left -= 1
        self.asked.pop(case.path, None)
        self.windows.give_back(case.slot)
        self.breaker.ended(outcome)


_AT_FIRST_LOOK: tuple[tuple[type[KstreamError], Outcome], ...] = (
    (NotFound, Outcome.GONE),
    (Denied, Outcome.DENIED),
    # What is at its path is no file any more.
    (InvalidInput, Outcome.CHANGED),
)
_REFUSALS: tuple[tuple[type[KstreamError], Outcome], ...] = ((NotFound, Outcome.GONE), (Denied, Outcome.DENIED))
_CLOSED_AND_GONE = "it was closed, and is not at this path any more"
_CLOSED_SINCE = "it was closed; what it is now can't be told"


def _said(error: KstreamError) -> str:
    return error.message.rstrip(".")
