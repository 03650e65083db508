"""When the demonstration counts a stream as drained."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.demo.run import drained
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Submit
from tests.simulated.yarn import START, SimulatedYarn


def test_a_stream_between_two_generations_is_quiet_and_not_drained() -> None:
    yarn = SimulatedYarn()
    yarn.carry_out(Submit(1, "its first generation"))
    yarn.arrive()
    yarn.pass_time(20)
    assert not drained(yarn.look(), START)
    yarn.now += timedelta(seconds=60)
    assert drained(yarn.look(), START)
    yarn.end(yarn.running[0].id, ApplicationState.FINISHED)
    left = {point.path: point.position for point in yarn.look().checkpoints}
    yarn.carry_out(Submit(2, "a restart"))
    yarn.claims[2] = replace(yarn.claims[2], positions=left)
    yarn.now += timedelta(seconds=60)
    assert not drained(yarn.look(), START)


def test_a_checkpoint_long_after_the_input_drains_a_stream_by_the_clock() -> None:
    yarn = SimulatedYarn()
    yarn.carry_out(Submit(1, "its first generation"))

    def looked(completed: int) -> Observation:
        times = {completed: START + timedelta(seconds=completed)}
        clock = Clockwork("checkpoint", "TaskManager", timedelta(minutes=1))
        return replace(yarn.look(), checkpoints=(Checkpoint("/any", None, times, times, clock=clock),))

    ended = START + timedelta(seconds=100)
    assert not drained(looked(115), ended)
    assert drained(looked(125), ended)
