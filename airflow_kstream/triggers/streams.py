"""Wait, in the triggerer, until a stream needs attention, and give its looks to be stored: a short row, a long one, and
the report of its task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_kstream import settings
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.printable import storable
from airflow_kstream.model.streams.declarations import PolicyEdit
from airflow_kstream.model.streams.looks import ReachedPositions
from airflow_kstream.model.streams.plan import Phase, Settled
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.model.streams.stream_state import Rounds, StreamState
from airflow_kstream.policy.states import due
from airflow_kstream.policy.streams.horizon.start_pacing import NO_HURRY
from airflow_kstream.policy.streams.pulse.blindness import Sight
from airflow_kstream.policy.streams.restart.blocked import held_back
from airflow_kstream.states.recorder import ReportUpdate, RowContent, recorder
from airflow_kstream.states.values import detail_row, ids_of, report_after, row_of, state_of
from airflow_kstream.supervise.streams.folder.run import named
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Subject
from airflow_kstream.triggers.awaiting import SETTLING_SECONDS, fired
from airflow_kstream.triggers.memory import Blindness, Memory, Recall
from airflow_kstream.triggers.notifying import Teller, declared_notifier, look
from airflow_kstream.triggers.poller import ClusterPoller, PolledVerdict
from airflow_kstream.triggers.shared import shared
from airflow_kstream.triggers.stream_metrics import publish, publish_events


class Recording:
    """The looks of one trigger at its stream. To be made in the triggerer's loop."""

    def __init__(self, subject: due.Subject, instance: object) -> None:
        self._subject = subject
        self._by = ids_of(instance)
        self._before: StreamState | None = None
        # The task has written what it saw and did since the last trigger of this stream.
        recorder().forget(subject)

    def saw(self, verdict: Verdict, memory: Memory, now: datetime, every: float, *, recalled: bool) -> None:
        """Give a look at the host's time `now` to the recorder; the next comes after `every` seconds. Never blocks.

        Before it is `recalled` what an earlier triggerer stored, the long row stays: it may know further positions.
        """
        rows = recorder()
        rounds = Rounds(max(every, rows.round_seconds), begun=True, streams=rows.streams)
        state = state_of(verdict, memory.ledger, replace(self._by, rounds=rounds), now, self._before)
        self._before, epoch = state, state.generation
        rows.saw(self._subject, due.Kind.VERDICT, RowContent(state.mark, epoch, lambda: row_of(state)))
        if verdict.step is None:
            return
        if recalled:
            self._detail(verdict, memory, state)
        if self._by.dag:
            report = ReportUpdate(self._by, lambda pushed: report_after(pushed, state, verdict))
            rows.report(self._subject, state.mark, epoch, report)

    def _detail(self, verdict: Verdict, memory: Memory, state: StreamState) -> None:
        past, people = verdict.past, verdict.people
        seen = len(past.ends), past.failure, verdict.progress.verified, past.former_spec, people.freeze, people.word
        mark = state.mark, seen
        look = RowContent(mark, state.generation, lambda: detail_row(state, _detail(verdict, memory)))
        recorder().saw(self._subject, due.Kind.DETAIL, look)


def _detail(verdict: Verdict, memory: Memory) -> dict[str, Any]:
    told = memory.ledger.to_json()["lasting"]
    more = {"told": told, "restart_blocked": memory.to_json()["blocked"], "doubt": memory.successor.doubt}
    more["pulse_why"] = verdict.progress.pulse_why
    more["facts"] = verdict.facts.to_json() if verdict.facts else None
    return {**verdict.to_json(), **more, "reached": memory.reached.to_json()}


_BLIND_AFTER = 300.0
# Seconds between two looks while nothing can be concluded, at most: a limit of minutes must not be noticed after hours.
_BLIND_EVERY = 60.0
# The place of `queued_too_long` in what the log shows.
_QUEUED = 4


@dataclass(frozen=True)
class _Clock:
    """The loop's clock and the host's, read at one moment: no server's time enters a wait."""

    loop: float
    host: datetime

    @classmethod
    def read(cls) -> _Clock:
        return cls(asyncio.get_running_loop().time(), datetime.now(UTC))

    def to_loop(self, moment: datetime | None) -> float | None:
        return None if moment is None else self.loop + (moment - self.host).total_seconds()

    def passed(self, moment: datetime | None) -> float:
        """Return a moment of the past; now if it is unknown, or was read from a clock that is ahead of this host's."""
        return self.loop - max((self.host - moment).total_seconds(), 0.0) if moment else self.loop

    def to_host(self, moment: float | None) -> datetime | None:
        return None if moment is None else self.host + timedelta(seconds=moment - self.loop)


@dataclass(frozen=True)
class _Pace:
    """The seconds between two looks, and those without a conclusion that wake the task."""

    every: float
    blind_after: float


class StreamTrigger(BaseTrigger):
    """A trigger that fires when a stream is due for a restart, is to stop or start, or ended, or when nobody sees it.

    A healthy one fires nothing, nor does one that is held or stopped. The trigger carries ids, numbers and policies
    only, and reads the rest of the stream's spec on HDFS, from the copy that the claim names or, without one, from the
    claim, so that a deferred task survives an upgrade. It has no `on_kill`: clearing or marking the task detaches and
    stops nothing.

    Example::

        self.defer(trigger=StreamTrigger("prod", "orders", every_seconds=30.0), method_name="resume")

    :param cluster_conn_id: the `kstream` connection.
    :param stream: the stream's name.
    :param every_seconds: the pause between two verdicts, or half of it where another trigger's round comes earlier.
    :param pause_seconds: the wait before the first verdict, at least SETTLING_SECONDS.
    :param blind_after_seconds: how long nothing may be concluded before the task is woken to look.
    :param policies: the declared policies as plain data; by default the claim's hold.
    :param memory: a `Memory` as plain data: what was known when the task deferred.
    :param follows_edits: whether `[kstream] streams_folder` declares the stream. Then an edit of its policies holds
        from the next look after `undeclared-*` kept it in the state_dir.
    """

    def __init__(
        self,
        cluster_conn_id: str,
        stream: str,
        every_seconds: float,
        pause_seconds: float = 0.0,
        blind_after_seconds: float = _BLIND_AFTER,
        policies: Mapping[str, Any] | None = None,
        memory: Mapping[str, Any] | None = None,
        follows_edits: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster_conn_id = cluster_conn_id
        self.stream = stream
        self.every_seconds = every_seconds
        self.pause_seconds = pause_seconds
        self.blind_after_seconds = blind_after_seconds
        self.policies = policies
        self.memory = memory
        self.follows_edits = follows_edits

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "cluster_conn_id": self.cluster_conn_id,
            "stream": self.stream,
            "every_seconds": self.every_seconds,
            "pause_seconds": self.pause_seconds,
            "blind_after_seconds": self.blind_after_seconds,
            "policies": self.policies,
            "memory": self.memory,
            "follows_edits": self.follows_edits,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(max(self.pause_seconds, SETTLING_SECONDS))
        memory, clock = Memory.from_json(self.memory), _Clock.read()
        logged: tuple[str, ...] = ()
        sight = Sight(
            looked=clock.passed(memory.declaration.declared),
            patience=self.blind_after_seconds,
            plan=clock.to_loop(memory.plan),
            blind_since=clock.passed(memory.blindness.since) if memory.blindness.since else None,
            wakings=memory.blindness.wakings,
        ).handed_on(clock.loop)
        key = self.cluster_conn_id, self.stream
        subject, recording, recall = self._subject(memory), Recording(key, self.task_instance), Recall(key)
        async with shared(ClusterPoller, self.cluster_conn_id) as poller, self._teller(memory) as teller, recall:
            while True:
                subject = subject.knowing(memory.declaration.edit)
                pace = self._pace(subject, memory.declaration.edit)
                every = pace.every if sight.blind_since is None else min(pace.every, _BLIND_EVERY)
                seen = await poller.next_verdict(subject, every, replace(sight, patience=pace.blind_after))
                clock, verdict, sight = _Clock.read(), seen.verdict, seen.sight
                self._log_edit(subject, memory, verdict)
                ensure = memory.stopped and verdict.calls_for_action
                memory = self._remember(memory, verdict, sight, clock)
                before = memory.ledger.kinds
                told = look(verdict, memory, blind=seen.blind)
                memory = replace(memory, ledger=teller.saw(*told, verdict.people.notify, verdict.people.app_name))
                publish(*key, verdict, sight.blind_for(clock.loop), blocked=memory.blocked is not None)
                publish_events(*key, before, memory.ledger.kinds)
                recording.saw(verdict, memory.recalls(recall.reached), clock.host, every, recalled=recall.done)
                stall = verdict.progress.stall
                held = poller.why_held_back(stall) if stall else ""
                logged = self._log_change(seen, clock, logged, held)
                if stall and not held and await self._examination_comes(poller, verdict, stall, memory, clock, every):
                    memory = memory.examines(stall, _Clock.read().host)
                if memory.stalls.stall or seen.wake or await self._turn_comes(poller, verdict, memory, clock, every):
                    memory = replace(memory, ledger=teller.handed_on)
                    yield self._event(seen, memory, await recall.awaited(), ensure=ensure)
                    return

    def _subject(self, memory: Memory) -> Subject:
        installation = settings.text("installation") if self.follows_edits else None
        return Subject(self.stream, self.policies, installation, memory.declaration.declared)

    def _pace(self, subject: Subject, edit: PolicyEdit | None) -> _Pace:
        """Return the pace of the looks by the policies that hold once this edit is known."""
        if edit is None or subject.by(edit) is not edit.policies:
            return _Pace(self.every_seconds, self.blind_after_seconds)
        watch: WatchPolicy = edit.read["watch"]
        return _Pace(watch.every.total_seconds(), watch.blind_after.total_seconds())

    def _log_edit(self, subject: Subject, memory: Memory, verdict: Verdict) -> None:
        if verdict.step is not None and subject.by(verdict.people.edit) != subject.by(memory.declaration.edit):
            self.log.info("%s: its declaration's policies were edited; the edited ones hold from now on", self.stream)

    def _teller(self, memory: Memory) -> Teller:
        return Teller(self.cluster_conn_id, self.stream, memory.ledger, declared_notifier(self.policies))

    async def _turn_comes(
        self, poller: ClusterPoller, verdict: Verdict, memory: Memory, clock: _Clock, every: float
    ) -> bool:
        """Wait for this stream's turn if it comes before the next look, and return whether it did."""
        if verdict.calls_for_action and not _calls(verdict, memory, clock):
            # Its restart is blocked: it would keep others from starting.
            return False
        wait = poller.turn(self.stream, verdict, due=verdict.calls_for_action, within=every)
        if wait:
            await asyncio.sleep(wait)
        return wait is not None

    async def _examination_comes(
        self, poller: ClusterPoller, verdict: Verdict, stall: Stall, memory: Memory, clock: _Clock, every: float
    ) -> bool:
        """Wait for this stream's turn to be examined, as a start does: it may end with one."""
        if not memory.may_examine(stall, clock.host):
            return False
        unhurried = replace(verdict, past=replace(verdict.past, start_may_wait=NO_HURRY))
        wait = poller.turn(self.stream, unhurried, due=True, within=every)
        if wait:
            await asyncio.sleep(wait)
        return wait is not None

    def _remember(self, before: Memory, verdict: Verdict, sight: Sight, clock: _Clock) -> Memory:
        memory = replace(
            before,
            plan=clock.to_host(sight.plan),
            blindness=Blindness(clock.to_host(sight.unseen_since), sight.wakings),
        )
        if verdict.step is not None or verdict.people.edit is not None:
            memory = replace(memory, declaration=replace(memory.declaration, edit=verdict.people.edit))
        if verdict.step is None:
            return memory.failed(verdict.why, clock.host) if verdict.shared else memory
        if memory.blocked and not (verdict.calls_for_action or verdict.people.freeze or verdict.progress.stall):
            self.log.info("%s: its restart, blocked since %s, is not due any longer", self.stream, memory.blocked.since)
            memory = replace(memory, blocked=None)
        stopped = isinstance(verdict.step, Settled) and verdict.step.phase is Phase.STOPPED
        memory = memory.saw(verdict.progress.reached).sees(verdict.generation)
        return replace(memory, word=verdict.people.word, stopped=stopped)

    def _event(self, seen: PolledVerdict, memory: Memory, recalled: ReachedPositions, *, ensure: bool) -> TriggerEvent:
        verdict = seen.verdict
        stalled = verdict.progress.pulse_why if memory.stalls.stall else ""
        why = f"{seen.wake}: {verdict.why}" if seen.wake else stalled or verdict.why
        payload = {"stream": self.stream, "why": why, "ensure": ensure, "memory": memory.to_json()}
        return fired(payload | {"recalled": recalled.to_json()})

    def _log_change(self, seen: PolledVerdict, clock: _Clock, logged: tuple[str, ...], held: str) -> tuple[str, ...]:
        """Log a line if something changed, and return the state that the log now shows."""
        verdict = seen.verdict
        progress, past, people = verdict.progress, verdict.past, verdict.people
        blind = bool(seen.wake)
        frozen = isinstance(verdict.step, Settled) and verdict.step.phase is Phase.FROZEN
        strangers = named(people.strangers_files)
        state = (
            # How far away a horizon is, which changes each time, is part of what waits.
            people.freeze if frozen else verdict.why,
            progress.pulse or "",
            str(verdict.generation),
            str(progress.verified),
            str(progress.queued_too_long),
            str(blind),
            people.freeze,
            str(bool(people.freeze_warning)),
            str(bool(held)),
            strangers,
            str(verdict.reminders),
        )
        if state != logged:
            why = storable(f"{verdict.why}{_details(verdict)}")
            self.log.info("%s generation %s: %s", self.stream, verdict.generation, why)
            if progress.queued_too_long and progress.queued is not None:
                self.log.warning("%s waits in YARN for %s; its queue may be full", self.stream, _words(progress.queued))
            if logged and logged[_QUEUED] == str(True) and not progress.queued_too_long:
                self.log.info("%s waits in YARN no longer", self.stream)
            if people.freeze:
                self.log.warning("%s: the cluster is %s", self.stream, people.freeze)
            if people.freeze_warning:
                self.log.error("%s: %s", self.stream, people.freeze_warning)
            if past.waits_for_a_person is not None and logged[-1:] != state[-1:]:
                # With the first look of this trigger, and daily: the last of the state counts the days.
                since = _words(past.waits_for_a_person)
                self.log.error("%s has waited for a person for %s: %s", self.stream, since, verdict.why)
            if strangers and strangers not in logged:
                self.log.warning("%s: strangers wrote in its folder, and count for nothing: %s", self.stream, strangers)
            if held:
                self.log.warning("%s is not examined, and not restarted for its stall: %s", self.stream, held)
            if blind:
                self.log.error("%s can't be seen, so its task looks: %s", self.stream, seen.wake)
        return state


def _calls(verdict: Verdict, memory: Memory, clock: _Clock) -> bool:
    return verdict.calls_for_action and not held_back(memory.blocked, verdict.step, verdict.people.word, clock.host)


def _details(verdict: Verdict) -> str:
    remaining, progress = verdict.credentials.remaining, verdict.progress
    horizon = f", horizon in {_words(remaining)}" if remaining is not None else ""
    horizon = horizon or ("" if verdict.horizon_known or verdict.step is None else ", horizon unknown")
    beat = f", heartbeat {progress.pulse}: {progress.pulse_why}" if progress.pulse else ""
    return beat + horizon


def _words(duration: timedelta) -> str:
    return format_duration(duration)
