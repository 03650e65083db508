"""Examining a batch that may hang: evidence first, and what two examinations together show."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound
from airflow_kstream.model.streams.contract import examined_marker, past_stalls, stalled_marker
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Examine, Settled, Step
from airflow_kstream.model.streams.stall import Examination, PastStall, Stall
from airflow_kstream.model.streams.stream_policies import planned_offsets
from airflow_kstream.policy.streams.pulse.stalls import StallFinding, finding, step_for_stall
from airflow_kstream.supervise.streams.folder.run import ActionLog, StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.pulse.evidence import take_evidence

# More than any day allows by default, for people; those of the last generations also count.
_RECORDS_KEPT = 100
_WORDS = {
    StallFinding.HANGS: "it hangs",
    StallFinding.MOVES: "it is slow, and does not hang: left alone",
    StallFinding.UNCERTAIN: "left alone until another examination finds the same",
}


@dataclass
class StallCare:
    """The care for one stall of one reconcile. `stall` is what a watcher concluded, None if it found none."""

    subject: StreamRun
    story: ActionLog
    stall: Stall | None
    _found: StallFinding | None = field(default=None)

    def instead_of(self, settled: Settled, observation: Observation, doubt: str | None) -> Step:
        """Return the step that the stall makes of a settled state: that state itself if it calls for nothing.

        `doubt` is what keeps any successor from the checkpoints as they are, None if nothing does.
        """
        if self.stall is None or observation.frozen or doubt:
            return settled
        return step_for_stall(self.subject.spec, observation, settled, self.stall, self._found)

    def examine(self, observation: Observation, step: Examine) -> None:
        """Take evidence, and keep what it shows for the next examination.

        Raises KstreamError: when nothing can be kept; then nothing is concluded.
        """
        folder, number = self.subject.folder, observation.generation
        self._require_kafka(step.stall)
        before = _last(folder, number, observation.files)
        now = self._examined(observation, step)
        folder.put(examined_marker(number), json.dumps(now.to_json()))
        self._found = finding(before, now)
        for words in now.hangs:
            self.story.tell(f"{step.stall.name}: {words}")
        self.story.record(f"examined {step.stall.name} of generation {number}", _WORDS[self._found])

    def record(self, observation: Observation, stall: Stall) -> None:
        """Record that this generation is ended for its stall: the same batch ends no other one."""
        past = PastStall(stall.generation, stall.batch, self.subject.session.hdfs.now())
        if all(each.generation != past.generation for each in past_stalls(observation.files)):
            self.subject.folder.mark(stalled_marker(past))
        self.subject.folder.forget(stalled_marker(old) for old in past_stalls(observation.files)[:-_RECORDS_KEPT])

    def _require_kafka(self, stall: Stall) -> None:
        """Raises Unavailable: when the declared brokers don't answer, for which the batch may wait.

        What they refuse, or this host can't ask, is none of the batch's matter.
        """
        run = self.subject
        if run.spec.kafka.bootstrap_servers is None:
            return
        number = stall.batch if stall.planned else stall.batch - 1
        try:
            planned = planned_offsets(run.session.hdfs.read(f"{stall.path}/offsets/{number}"))
            if planned:
                run.session.topic_ends(run.spec.kafka, planned)
        except KstreamError as error:
            if error.retryable:
                raise
            self.story.tell(f"Kafka is not asked: {error.without_advice}")

    def _examined(self, observation: Observation, step: Examine) -> Examination:
        hdfs, tell = self.subject.session.hdfs, self.story.tell
        query = next((point.query for point in observation.checkpoints if point.path == step.stall.path), None) or ""
        try:
            found = take_evidence(self.subject, step.application, observation.generation, tell, query)
        except KstreamError as error:
            tell(f"no evidence of {step.application.id}: {error.without_advice}")
            return Examination(step.stall, hdfs.now(), dumped=False)
        for words in found.doubts():
            tell(words)
        hangs = tuple(str(each) for each in found.still.stuck)
        return Examination(step.stall, hdfs.now(), found.dumped, hangs, found.moves, found.progress)


def _last(folder: StreamFolder, generation: int, names: frozenset[str]) -> Examination | None:
    """Read the last examination of this generation; None if there is none, or it can't be understood."""
    marker = examined_marker(generation)
    if marker not in names:
        return None
    try:
        return Examination.from_json(json.loads(folder.text(marker)))
    except (NotFound, InvalidInput, ValueError, RecursionError):
        return None
