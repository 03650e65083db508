"""What a trigger gives to store of its looks: a short row, a long one, and its task's report."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_kstream.model.streams.stream_state import Rounds, StreamState
from airflow_kstream.policy.states.due import Kind, Subject
from airflow_kstream.states.recorder import ReportUpdate, RowContent, recorder
from airflow_kstream.states.values import detail_row, ids_of, report_after, row_of, state_of
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.triggers.memory import Memory


class Recording:
    """The looks of one trigger at its stream. To be made in the triggerer's loop."""

    def __init__(self, subject: Subject, instance: object) -> None:
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
        rows.saw(self._subject, Kind.VERDICT, RowContent(state.mark, epoch, lambda: row_of(state)))
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
        recorder().saw(self._subject, Kind.DETAIL, look)


def _detail(verdict: Verdict, memory: Memory) -> dict[str, Any]:
    told = memory.ledger.to_json()["lasting"]
    more = {"told": told, "restart_blocked": memory.to_json()["blocked"], "doubt": memory.successor.doubt}
    more["pulse_why"] = verdict.progress.pulse_why
    more["facts"] = verdict.facts.to_json() if verdict.facts else None
    return {**verdict.to_json(), **more, "reached": memory.reached.to_json()}
