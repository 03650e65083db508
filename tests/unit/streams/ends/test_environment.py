"""Ends that are the environment's: whose word is believed, and how long the trouble lasts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.policy.streams.ends.after_end import believed, continues, trouble
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.memory import past_ends
from tests.simulated.ended_lives import BLUE, GREEN, Changing
from tests.simulated.life import Life
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of, past_end

KAFKA = "User class threw exception: org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching"
SILENT = past_end(3, kind=EndKind.INFRASTRUCTURE, fingerprint="k", silent="Kafka")


def recorded(life: Life) -> list[bool]:
    return [end.shared for end in past_ends(life.run.folder, life.run.folder.names())]


@pytest.mark.parametrize(
    ("end", "spec_worked", "is_the_environments"),
    [
        (replace(SILENT, worked=True), False, True),
        (SILENT, True, True),
        (SILENT, False, False),
        (changed(SILENT, silent="", worked=True), True, False),
    ],
)
def test_a_silent_server_is_believed_of_a_spec_that_has_worked(
    end: PastEnd, spec_worked: bool, is_the_environments: bool
) -> None:
    assert believed(end, spec_worked=spec_worked).shared is is_the_environments


def test_one_silence_has_many_errors_and_lasts_until_a_generation_works() -> None:
    before = replace(SILENT, shared=True)
    another = replace(SILENT, generation=4, fingerprint="another")
    assert continues(before, another)
    assert not continues(SILENT, another)
    assert not continues(before, replace(another, worked=True))
    assert not continues(before, changed(another, silent="HDFS"))
    assert not continues(before, changed(another, silent=""))
    assert not continues(None, another)


def test_a_changed_spec_that_finds_no_kafka_goes_back(life: Life) -> None:
    """The brokers that it names may be the change."""
    stream = Changing(life)
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    stream.declared = GREEN
    stream.reconcile()
    stream.end(KAFKA)
    stream.follow()
    assert stream.arguments == [BLUE.arguments, GREEN.arguments, BLUE.arguments]
    assert recorded(life) == [False]


def test_a_planned_restart_into_an_outage_is_the_environments(life: Life) -> None:
    """The new generation committed nothing, and the one before with the same spec did."""
    stream = Changing(life)
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    life.request_restart()
    stream.reconcile()
    stream.end(KAFKA)
    assert stream.follow().generation == 3
    assert recorded(life) == [True]


class TestTheTrouble:
    """Of generation 4, after the environment had ended generation 3."""

    @pytest.fixture
    def stream(self, life: Life) -> Changing:
        stream = Changing(life)
        stream.reconcile(Mode.ENSURE)
        stream.commit()
        stream.end(KAFKA)
        return stream

    def test_lasts_until_its_successor_commits(self, stream: Changing) -> None:
        assert stream.life.watch().past.environment == "", "nobody has recorded the end yet"
        stream.follow()
        assert stream.life.watch().past.environment == "Kafka"
        assert stream.life.watch().to_json()["environment"] == "Kafka"
        stream.commit()
        assert stream.life.watch().past.environment == ""

    def test_ends_for_a_source_that_brings_nothing_after_a_stable_life(self, stream: Changing) -> None:
        stream.follow()
        stream.life.clock.ahead += timedelta(minutes=59)
        assert stream.life.watch().past.environment == "Kafka"
        stream.life.clock.ahead += timedelta(minutes=2)
        assert stream.life.watch().past.environment == ""

    def test_is_none_of_a_stream_that_a_person_stopped(self, stream: Changing) -> None:
        stream.follow()
        stream.life.set_desired(DesiredState.STOPPED)
        assert stream.life.watch().past.environment == ""

    def test_of_several_streams_without_a_silent_server_is_their_error(self) -> None:
        yarn = SimulatedYarn(claims={4: claim_of(TICKET_SPEC, 4, START)})
        yarn.applications = [(4, application(4, ApplicationState.ACCEPTED))]
        yarn.ends = [changed(SILENT, silent="", fingerprint="com.acme.Gone", shared=True)]
        assert trouble(TICKET_SPEC.failure, yarn.look()) == "com.acme.Gone"
        yarn.ends = [replace(yarn.ends[0], shared=False)]
        assert trouble(TICKET_SPEC.failure, yarn.look()) == ""
        yarn.desired = Desired(DesiredState.HELD)
        yarn.ends = [replace(yarn.ends[0], shared=True)]
        assert trouble(TICKET_SPEC.failure, yarn.look()) == ""
