"""Whether a batch that a watcher found stalled is a reason to replace its generation (`heartbeat.on_stall: restart`).

A batch that takes long looks, in its checkpoint, as one that hangs. So nothing is ended by the checkpoint alone: two
examinations, a quarter of the threshold apart, have to find the batch's threads at one place and no count of the
engine's higher. A slow batch, a skewed one, or one that waits for processes changes a count or has no task that stands
still.

Where several streams do not get on at the same time, or servers were silent just now, the cause is the cluster's: a
restart would heal none of the streams, and cost each its state and its place in the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.contract import past_stalls
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Examine, Phase, Settled, Step, Stop
from airflow_kstream.model.streams.stall import Examination, Stall
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import OnStall
from airflow_kstream.policy.streams.pulse.blindness import ClusterSight
from airflow_kstream.policy.streams.pulse.heartbeat import CONFIRMS, overlong_batches

# Of the cluster's streams, so many that do not get on are the cluster's matter; a single one never is.
_SHARE, _AT_LEAST = 1 / 3, 2
# Seconds after which a stream that was not looked at no longer counts: it is not watched here.
_GONE = 600.0

_DAY = timedelta(days=1)
# Of the threshold, which is four times the longest batch: what takes ten times as long is left alone, whatever its
# threads look like. One that reads a database row by row stands at one place in every dump, and Spark counts nothing.
_LASTS = 3.0


class StallFinding(StrEnum):
    """The word of two examinations. UNCERTAIN: it has to be so once more."""

    HANGS = "hangs"
    MOVES = "moves"
    UNCERTAIN = "uncertain"


def why_left_alone(spec: StreamSpec, observation: Observation, stall: Stall) -> str:
    """Return what the stream's own rules have against a restart for this stall; empty if nothing."""
    policy, past = spec.heartbeat, past_stalls(observation.files)
    before = any((each.generation, each.batch) == (stall.generation - 1, stall.batch) for each in past)
    # Two supervisors may each have recorded one.
    lately = {each.generation for each in past if observation.now - each.at < _DAY} - {stall.generation}
    reasons = (
        (policy.on_stall is not OnStall.RESTART, f"on_stall is {policy.on_stall}"),
        (before, f"{stall.name} hung before, and the restart did not help: a person has to look"),
        (
            len(lately) >= policy.stall_restarts_per_day,
            f"{len(lately)} restarts for stalls within 24h are all that stall_restarts_per_day allows",
        ),
    )
    return next((why for holds, why in reasons if holds), "")


def restarted_in_vain(observation: Observation) -> str:
    """Return words for a start without a commit after a restart for a stall; empty if that was no such restart."""
    before = [each for each in past_stalls(observation.files) if each.generation == observation.generation - 1]
    if not before:
        return ""
    unit = next((point.clock.unit for point in observation.checkpoints if point.clock), "batch")
    hung = f"generation {before[-1].generation} was ended because its {unit} {before[-1].batch} hung"
    return f"{hung}, and that did not help: a person has to look"


def step_for_stall(
    spec: StreamSpec, observation: Observation, settled: Settled, stall: Stall, found: StallFinding | None
) -> Step:
    """Return the step for a stream of which a watcher concluded this stall; `settled` where it is none any longer.

    `found` is what this supervisor's examination showed; without one, that is the step.
    """
    app = observation.current
    wanted = observation.desired.state is DesiredState.RUNNING and settled.phase is Phase.RUNNING
    now = next((each for each in overlong_batches(spec.heartbeat, observation) if each.is_same(stall)), None)
    if now and not now.planned:
        # Since when its input waits, only who looked all the time knows.
        now = replace(now, lasts=stall.lasts)
    if not (wanted and now and app and app.state is ApplicationState.RUNNING):
        return settled
    if why_left_alone(spec, observation, now):
        return settled
    if found is None:
        return Examine(now, app, f"{now}: what hangs?")
    if found is StallFinding.HANGS:
        return Stop(observation.generation, app.id, f"{now}, and hangs", preflight=True, hung=now)
    return settled


def finding(before: Examination | None, now: Examination) -> StallFinding:
    """Return what this examination shows after the one `before`, of whatever batch that was."""
    again = before if before is not None and before.stall.is_same(now.stall) else None
    apart = again is not None and now.at - again.at >= now.stall.limit * CONFIRMS
    if now.moves or (again and again.progress and now.progress and again.progress != now.progress):
        return StallFinding.MOVES
    if now.dumped and not now.hangs:
        return StallFinding.MOVES
    long_enough = now.stall.lasts >= now.stall.limit * _LASTS
    # Where checkpoints come by the clock, the leader alone can tell whether the job reads records.
    alike = again is not None and again.dumped == now.dumped and (now.dumped or not now.stall.overdue)
    return StallFinding.HANGS if apart and alike and long_enough else StallFinding.UNCERTAIN


@dataclass(frozen=True)
class _Look:
    at: float
    gets_on: bool


@dataclass(frozen=True)
class Together:
    """The last look at each stream of one cluster. All times are seconds by one clock of the watcher's own."""

    looks: Mapping[str, _Look] = field(default_factory=dict)

    def saw(self, stream: str, now: float, *, gets_on: bool) -> Together:
        """Return what is known after a look that found the stream getting on, or late, or that concluded nothing."""
        return replace(self, looks={**self.looks, stream: _Look(now, gets_on)})

    def why_held_back(self, now: float, sight: ClusterSight, quiet: float) -> str:
        """Return why no stall is a reason for a restart now; empty if one may be.

        Servers that were silent have to have answered for `quiet` seconds: streams get on again by themselves.
        """
        if sight.failing_since is not None:
            return "the cluster's servers do not answer every look"
        if sight.answers_since is not None and now - sight.answers_since < quiet:
            return f"the cluster's servers answer again for {now - sight.answers_since:.0f} s only"
        recent = [look for look in self.looks.values() if now - look.at < _GONE]
        late = sum(not look.gets_on for look in recent)
        if late >= max(_AT_LEAST, len(recent) * _SHARE):
            return f"{late} of {len(recent)} streams do not get on, so the cause may be the cluster's"
        return ""
