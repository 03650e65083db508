"""A look that tells whether a stream has committed what had arrived: who is believed, and who is asked how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.progress import PartitionAt, ProgressAnswer, ProgressCondition, Proof, TopicsAt
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.progress import ProgressWatch
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, session_of

MINUTE = timedelta(minutes=1)
BROKERS = KafkaPolicy("kafka1.example.com:9092")


@dataclass
class SimKafka:
    """Brokers with one topic, `events`: its partition 0 ends at `end`, and `stamps` are timestamps of its last records
    by their offsets. Of its other partitions each is empty."""

    end: int = 50
    stamps: dict[int, datetime] = field(default_factory=dict)
    partitions: int = 1
    asked: list[str] = field(default_factory=list)
    away: bool = False

    def at(self, brokers: KafkaPolicy, topics: Collection[str], moment: datetime) -> TopicsAt:
        self.asked.append(brokers.bootstrap_servers or "")
        if self.away:
            raise Unavailable("nobody answers", tried="ask Kafka")
        since = ((offset, stamp) for offset, stamp in sorted(self.stamps.items()) if stamp >= moment)
        empty = dict.fromkeys(range(self.partitions), PartitionAt(0, 0))
        partitions = empty | {0: PartitionAt(0, self.end, *next(since, ()))}
        return TopicsAt(moment + MINUTE, dict.fromkeys(topics, partitions))


class Asked:
    """A stream that runs and has committed once, and one who asks for what it has committed."""

    def __init__(self, life: Life, **changed: Any) -> None:
        self.life, self.kafka, self.allow = life, SimKafka(), Allow(brokers=("kafka1.example.com:9092",))
        self.spec = replace(SPEC, **changed)
        self.run = StreamRun(life.run.session, self.spec, life.engine)
        Reconciler(self.run, tell=lambda line: None).run(Mode.ENSURE)
        self.commit()
        self.moment = life.clock.now()
        self.kafka.stamps = {42: self.moment + MINUTE}
        self.life.clock.ahead += 5 * MINUTE
        self.watch = self.watcher()

    def watcher(self, *, again: bool = True) -> ProgressWatch:
        session = session_of(self.life.hdfs, self.life.yarn)
        cluster = replace(CLUSTER, allow=self.allow)
        session = replace(session, cluster=cluster, kafka=cast(KafkaEnds, self.kafka))
        return ProgressWatch(session, lambda spec: self.life.engine, again=again)

    def commit(self, read: int | None = None) -> None:
        if read is not None:
            self.life.engine.reads = {"events": {0: read}}
        self.life.engine.complete_epoch(self.spec)

    def question(self, **more: Any) -> ProgressCondition:
        return ProgressCondition(stream=self.spec.name, moment=self.moment, **more)

    def answer(self, **more: Any) -> ProgressAnswer:
        return self.watch.answer(self.question(**more))


def test_a_later_batch_proves_it(life: Life) -> None:
    asked = Asked(life)
    assert asked.answer().proof is None
    asked.commit()
    assert asked.answer().proof is Proof.BATCH


def test_a_stream_that_runs_and_is_quiet_is_done_after_the_time_that_was_said(life: Life) -> None:
    asked = Asked(life)
    assert asked.answer(quiet_after=6 * MINUTE).proof is None
    life.clock.ahead += MINUTE
    assert asked.answer(quiet_after=6 * MINUTE).proof is Proof.QUIET


@pytest.mark.parametrize("state", [DesiredState.HELD, DesiredState.STOPPED])
def test_what_a_person_holds_or_stopped_counts_again_once_it_is_wanted(life: Life, state: DesiredState) -> None:
    asked = Asked(life)
    asked.commit()
    set_desired(asked.run, state, "a repair")
    assert asked.answer().words.endswith(f"; it is {state}")
    assert asked.answer().proof is None
    set_desired(asked.run, DesiredState.RUNNING, "repaired")
    assert asked.answer().proof is Proof.BATCH


def test_while_a_server_is_away_nothing_is_known_and_no_error_ends_the_wait(life: Life) -> None:
    asked = Asked(life)
    asked.commit()

    def away(request: str, about: str) -> None:
        raise Unavailable("connection refused", tried=request)

    life.yarn.at_request = away
    assert asked.answer().proof is None
    assert "nothing is known of it now: " in asked.answer().words
    life.yarn.at_request = lambda request, about: None
    assert asked.answer().proof is Proof.BATCH


def test_a_checkpoint_that_is_not_what_it_was_proves_nothing(life: Life) -> None:
    asked = Asked(life)
    asked.commit()
    asked.answer()
    epochs = f"{asked.spec.checkpoints[0]}/epochs.json"
    life.hdfs.files[epochs] = (f'["{life.clock.now().isoformat()}"]', life.clock.now())
    assert "CHECKPOINT_CHANGED" in asked.answer().words


def test_a_batch_that_a_stranger_wrote_proves_nothing_and_names_its_writer(life: Life) -> None:
    asked = Asked(life)
    asked.commit()
    life.hdfs.owners[f"{asked.spec.checkpoints[0]}/epochs.json"] = "mallory"
    answer = asked.answer()
    assert answer.proof is None
    assert "batches that mallory wrote" in answer.words


def test_a_name_that_no_stream_has_is_answered_with_the_one_that_was_meant(life: Life) -> None:
    asked = Asked(life)
    with pytest.raises(NotFound, match=r"\(did you mean orders\?\)"):
        asked.watch.answer(replace(asked.question(), stream="order"))


def test_a_stream_without_checkpoints_is_refused(life: Life) -> None:
    with pytest.raises(InvalidInput, match="orders declares no checkpoint"):
        Asked(life, checkpoints=()).answer()


def test_limited_batches_are_refused_where_only_a_supervisor_keeps_the_declaration(life: Life) -> None:
    with pytest.raises(InvalidInput, match="its epochs are limited"):
        Asked(life, arguments=("limited",)).answer()


def test_with_kafka_the_offsets_of_then_prove_it_and_it_is_asked_once(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=41)
    assert "has not reached the offsets of then in events[0]" in asked.answer().words
    asked.commit(read=42)
    assert asked.answer().proof is Proof.OFFSETS
    assert asked.kafka.asked == ["kafka1.example.com:9092"]


def test_records_count_that_are_out_of_order_by_the_difference_of_clocks(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    second = timedelta(seconds=1)
    asked.kafka.stamps = {40: asked.moment + second, 41: asked.moment - second, 42: asked.moment + MINUTE}
    asked.commit(read=41)
    assert asked.answer().proof is None
    asked.commit(read=42)
    assert asked.answer().proof is Proof.OFFSETS


def test_what_kafka_had_at_one_moment_proves_nothing_of_another(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    assert asked.answer().proof is Proof.OFFSETS
    asked.kafka.end, asked.kafka.stamps = 60, {}
    later = replace(asked.question(), moment=asked.moment + 2 * MINUTE)
    assert asked.watch.answer(later).proof is None


def test_a_query_that_began_again_reads_what_kafka_has_now(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    watch = asked.watcher(again=False)
    assert watch.answer(asked.question()).proof is Proof.OFFSETS
    life.engine.query, asked.kafka.end, asked.kafka.stamps = "another", 10, {}
    asked.commit(read=10)
    assert watch.answer(asked.question()).proof is Proof.OFFSETS


def test_a_limit_holds_for_what_a_query_reads_beside_kafka(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS, arguments=("limited",))
    asked.commit(read=42)
    assert asked.answer().proof is Proof.OFFSETS
    life.engine.reads_more = True
    with pytest.raises(InvalidInput, match="its epochs are limited"):
        asked.answer()


def test_a_million_partitions_are_remembered_and_those_of_the_last_question(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    asked.kafka.partitions = 400_000
    moments = [asked.moment - number * MINUTE for number in (0, 1, 2)]
    for moment in (*moments, moments[2], moments[0], moments[2]):
        asked.watch.answer(replace(asked.question(), moment=moment))
    assert len(asked.kafka.asked) == 4, "the first one again, and no other"


def test_a_kafka_that_is_away_is_an_error_that_passes(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    asked.kafka.away = True
    with pytest.raises(Unavailable, match="nobody answers"):
        asked.answer()
    asked.kafka.away = False
    assert asked.answer().proof is Proof.OFFSETS


def test_a_topic_that_was_made_again_is_waited_for_and_asked_again(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    asked.kafka.end, asked.kafka.stamps = 10, {}
    for _ in range(2):
        with pytest.raises(NotFound, match="events: deleted and made again"):
            asked.answer()
    assert len(asked.kafka.asked) == 2


def test_brokers_that_the_connection_does_not_allow_are_not_asked(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    asked.allow = Allow()
    with pytest.raises(Denied, match=r"does not allow brokers: kafka1\.example\.com:9092"):
        asked.watcher().answer(asked.question())
    assert asked.kafka.asked == []


def test_brokers_that_a_claim_alone_names_are_not_asked_and_no_batch_replaces_them(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=42)
    for path in [path for path in life.hdfs.files if "/declared." in path]:
        life.hdfs.delete(path)
    with pytest.raises(NotFound, match="nobody asks brokers that a claim alone names"):
        asked.watcher().answer(asked.question())
    assert asked.kafka.asked == []
    declared = {"kafka": {"bootstrap_servers": "kafka1.example.com:9092"}}
    assert asked.watcher().answer(asked.question(policies=declared)).proof is Proof.OFFSETS


def test_a_declaration_at_hand_may_leave_out_the_brokers_of_a_supervisors_copy(life: Life) -> None:
    asked = Asked(life, kafka=BROKERS)
    asked.commit(read=41)
    assert asked.answer(policies={"kafka": {}}).proof is Proof.BATCH
    assert asked.kafka.asked == []


def test_a_defect_in_one_look_costs_no_other_stream_its_answer(life: Life) -> None:
    asked, broken = Asked(life), Asked(life, name="broken", checkpoints=("/data/broken",), kafka=BROKERS)
    asked.commit()
    life.engine.reads = cast("Any", {"events": "no offsets"})
    questions = [asked.question(), broken.question()]
    fine, failed = (asked.watch.answers(questions)[question.key] for question in questions)
    assert isinstance(fine, ProgressAnswer)
    assert fine.proof is Proof.BATCH
    assert isinstance(failed, ProgressAnswer)
    assert "nothing is known of it now: this look failed: AttributeError" in failed.words


def test_all_questions_cost_one_listing_and_one_look_at_each_stream(life: Life) -> None:
    asked = Asked(life)
    asked.commit()
    requests: Counter[str] = Counter()
    life.yarn.at_request = lambda request, about: requests.update([request])
    life.hdfs.at_request = lambda request, path: requests.update([f"{request} {path}"])
    one = asked.question()
    asked.answer()
    requests.clear()
    asked.answer()
    alone = dict(requests)
    requests.clear()
    questions = [replace(one, moment=one.moment - timedelta(seconds=number)) for number in range(1000)]
    answers = asked.watch.answers(questions)
    assert dict(requests) == alone
    assert len(answers) == 1000
    assert {isinstance(answer, ProgressAnswer) and answer.proof for answer in answers.values()} == {Proof.BATCH}
