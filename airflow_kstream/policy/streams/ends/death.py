"""Whether anything of an ended generation may still write: proof where there is one, silence where there is none.

The ResourceManager calls an application ended when it has ordered its containers to be killed, or has not heard from
its driver for a while. Neither says that the processes are gone: a driver that only YARN lost plans new batches for as
long as its client retries (15 minutes, yarn.resourcemanager.connect.max-wait.ms). That YARN lists no application is
judged before, in `restart/reconcile.py`.

Where only silence is left, the outputs that the generation declared take part in it: a job whose checkpoints fail may
still write. Each is summed up by the NameNode (files, folders, bytes) five times in the whole wait, and the sums must
not differ. So whatever is created, closed, deleted, or grows by a block is seen, for one request per output and look:
of a million part files none is listed (0.25 s of a NameNode for 300,000). A rename is not seen: sinks rename when a
checkpoint is complete, which moves the checkpoint. Nor is growth within a block: a sink that commits with checkpoints
commits nothing of that, because the folder of these is closed before a successor reads where to begin; one that does
not is not seen as long as it fills no block. What can't be summed up, or changes by somebody else's hand, is for a
person: nothing is concluded from it.

`lives` tells the lives of a stream's generations, by their claims and by the record of ends that nobody planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import zip_longest

from airflow_kstream.model.clusters.application import Containers, NodeReport, NodeVerdict
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import started_marker, stopped_marker
from airflow_kstream.model.streams.generation import Claim, Life, Missing, Position
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.looks import Looks, Sign, SignKind
from airflow_kstream.model.streams.observation import Observation, OutputsLook
from airflow_kstream.model.streams.plan import Refuse, Wait
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import StopPolicy

# A source that sleeps at night has few long intervals: they count when one in ten is that long.
_RARE = 0.9


@dataclass(frozen=True)
class Dead:
    """The verdict that nothing of a generation writes any longer; `proof` says how that is known."""

    proof: str


def death(spec: StreamSpec, observation: Observation, looks: Looks) -> Dead | Wait | Refuse:
    """Judge the newest generation, none of whose applications lives by the ResourceManager's word."""
    number, containers = observation.generation, observation.yarn.containers
    if stopped_marker(number) in observation.files:
        return Dead("it stopped before its end, and told so")
    if containers and (live := containers.nodes(NodeVerdict.LIVE)):
        return _still_running(spec.stop, observation, looks, live)
    if containers and containers.complete:
        return Dead("all its containers are complete")
    if containers and containers.driver.verdict is NodeVerdict.COMPLETE:
        return _without_its_driver(spec.stop, observation, looks)
    if observation.current is None and not ran(observation) and not _taken_over(observation):
        return Dead("nothing of it ever ran")
    return _silent(spec, observation, looks, containers)


def only_silence_proves(observation: Observation) -> bool:
    """Return whether neither its own word nor a NodeManager's tells what became of the newest generation, which ran."""
    containers = observation.yarn.containers
    if stopped_marker(observation.generation) in observation.files:
        return False
    if containers and (containers.nodes(NodeVerdict.LIVE) or containers.driver.verdict is NodeVerdict.COMPLETE):
        return False
    return observation.current is not None or ran(observation) or _taken_over(observation)


def ran(observation: Observation) -> bool:
    """Return True if something proves that the newest generation ran, whatever YARN lists: its driver's own marker, a
    commit that came after the claim, or an application that was running when it was adopted. One without a claim is
    only known by what it left, and is not believed to have done nothing."""
    claim = observation.claim
    if claim is None or claim.generation < observation.generation:
        return observation.generation > 0
    if started_marker(claim.generation) in observation.files or not claim.submitted_by_us:
        return True
    return any(_moved_on(claim, point) for point in observation.checkpoints)


def silence_needed(policy: StopPolicy, checkpoints: tuple[Checkpoint, ...]) -> timedelta:
    """Return the time for which checkpoints must not move before their writer counts as gone.

    A trigger of five minutes, or a batch of forty, is silent for that long while its writer lives. So the time is twice
    the median interval between batches, or the ninth decile where intervals vary, within the policy's limits. Of
    checkpoints that come by the clock it is twice the age that the newest may have, however long that is: it follows
    from what the job's own settings allow.
    """
    return max([policy.silence, *(_usual(policy, point) for point in checkpoints)])


def _taken_over(observation: Observation) -> bool:
    """Return True if the first generation would follow a writer that is unknown here."""
    return observation.claim is None and any(not point.empty for point in observation.checkpoints)


def silence_for(spec: StreamSpec, observation: Observation) -> timedelta:
    """Return for how long everything that the newest generation wrote must be silent."""
    if unwritten(spec, observation):
        # Its job writes elsewhere, where no silence can be seen.
        return max(spec.stop.silence, spec.stop.longest_silence)
    return silence_needed(spec.stop, observation.checkpoints)


def _usual(policy: StopPolicy, point: Checkpoint) -> timedelta:
    if point.clock is not None:
        return 2 * point.clock.limit
    intervals = sorted(point.intervals())
    if not intervals:
        return timedelta()
    usual = max(2 * intervals[len(intervals) // 2], intervals[min(len(intervals) - 1, int(len(intervals) * _RARE))])
    return min(usual, policy.longest_silence)


def unwritten(spec: StreamSpec, observation: Observation) -> tuple[Checkpoint, ...]:
    """Return the checkpoints that have no file although the last job ran for longer than a first commit may take."""
    app = observation.current
    if app is None or app.started is None or app.finished is None:
        return ()
    # Both times are the ResourceManager's.
    ran_long = app.finished - app.started > spec.heartbeat.start_timeout
    return tuple(point for point in observation.checkpoints if ran_long and point.absent)


def _moved_on(claim: Claim, point: Checkpoint) -> bool:
    before = claim.position_of(point.path)
    if before is None or Missing.POSITIONS in claim.file.missing:
        return point.last_commit is not None and point.last_commit > claim.claimed_at
    return _same_query(before, point.position) and point.position.commit > before.commit


def _same_query(before: Position, at: Position) -> bool:
    return before.query is None or before.query == at.query


def _still_running(
    policy: StopPolicy, observation: Observation, looks: Looks, live: tuple[NodeReport, ...]
) -> Wait | Refuse:
    seen = "; ".join(map(str, live))
    left = 2 * policy.am_expiry - looks.age_of(SignKind.ALONE)
    if left <= timedelta():
        return Refuse(
            f"generation {observation.generation} has ended by the ResourceManager's word, and {seen}: "
            "nothing is submitted beside them. End those processes on that node, or, if they are gone, restart its "
            "NodeManager"
        )
    return Wait(observation.now + left, f"it has ended by the ResourceManager's word, and {seen}")


def _without_its_driver(policy: StopPolicy, observation: Observation, looks: Looks) -> Dead | Wait:
    """Only the driver writes the checkpoint's logs, and executors exit when they lose it: they get `silence` for it, or
    as long as its engine lets them go on."""
    left = max(policy.silence, observation.yarn.orphans_live) - looks.age_of(SignKind.ALONE)
    if left <= timedelta():
        return Dead("its first container is complete, and the others had time to notice")
    return Wait(observation.now + left, "its first container is complete; the others get time to notice")


def _silent(
    spec: StreamSpec, observation: Observation, looks: Looks, containers: Containers | None
) -> Dead | Wait | Refuse:
    """Wait for silence, the last resort; the driver of a node that is cut off may also run for twice an AM's expiry."""
    needed, alone = silence_for(spec, observation), looks.age_of(SignKind.ALONE)
    outputs = None if observation.folder.accepted is not None else observation.folder.outputs
    unchanged = outputs.unchanged if outputs else needed
    quiet = min(looks.age_of(SignKind.QUIET), alone)
    lost = containers.driver if containers and containers.driver.cut_off else None
    expiry = 2 * spec.stop.am_expiry - looks.age(Sign(SignKind.LOST, lost.node)) if lost else timedelta()
    left = max(needed - quiet, needed - unchanged, expiry)
    if left <= timedelta():
        words = f"{lost}, for twice the expiry of an ApplicationMaster, and " if lost else ""
        silent = "its checkpoints and outputs" if outputs else "its checkpoints"
        return Dead(f"{words}{silent} were silent for {format_duration(needed)}")
    if quiet < needed and alone > 2 * needed:
        return Refuse(
            f"a checkpoint moved within the last {format_duration(needed)} though no application of this stream has "
            f"lived for {format_duration(alone)}: somebody else writes it. `yarn application -list` names what "
            "runs: stop that job, or adopt it with `kstream streams adopt SPEC.yaml --application-id ID`"
        )
    if outputs and unchanged < needed and alone > (needed if outputs.doubt else 2 * needed):
        return Refuse(_outputs_doubt(spec, observation, outputs, needed))
    return Wait(observation.now + left, _waiting_for(needed, containers, lost, outputs))


def _outputs_doubt(spec: StreamSpec, observation: Observation, outputs: OutputsLook, needed: timedelta) -> str:
    where, number = ", ".join(outputs.paths), observation.generation
    told = (
        f"whether anything still writes {where} can't be told: {outputs.doubt}"
        if outputs.doubt
        else f"{where} changed within the last {format_duration(needed)}"
    )
    return (
        f"generation {number} of {spec.name} has ended by the ResourceManager's word, no NodeManager tells that its "
        f"processes are gone, and {told}. End what is left of it on its nodes; once nothing of it runs, let generation "
        f"{observation.next_generation} follow with `kstream streams accept SPEC.yaml`"
    )


def _waiting_for(
    needed: timedelta, containers: Containers | None, lost: NodeReport | None, outputs: OutputsLook | None
) -> str:
    if lost:
        return f"{lost}: its driver may run for twice the expiry of an ApplicationMaster"
    silent = f"the checkpoint and {', '.join(outputs.paths)}" if outputs else "the checkpoint"
    words = f"{silent} must be silent for {format_duration(needed)}"
    # Who looks without a right to act asks no NodeManager: it shows the longest wait, which is rarely needed.
    return f"{words}; {containers.driver}" if containers else f"{words}, unless a NodeManager tells its end before"


def lives(claims: Sequence[Claim], ends: Sequence[PastEnd], stops: Mapping[int, str]) -> tuple[Life, ...]:
    """Return a life for each claim, oldest first. `stops` are the reasons for which generations were asked to stop.

    A generation that no end is recorded of was replaced: it ended, at the latest, when its successor was claimed.
    """
    recorded = {end.generation: end for end in ends}
    return tuple(
        _life(claim, after, recorded.get(claim.generation), stops.get(claim.generation, ""))
        for claim, after in zip_longest(claims, claims[1:])
    )


def _life(claim: Claim, after: Claim | None, end: PastEnd | None, stop: str) -> Life:
    life = Life(
        claim.generation, claim.claimed_at, claim.claimed_by, claim.reason, claim.adoption.application is not None
    )
    if end is not None:
        words = f"{end.cause}; killed by {end.killed_by}" if end.killed_by else end.cause
        return replace(life, ended=end.at, end=words, planned=False)
    if after is None:
        return replace(life, end=stop)
    return replace(life, ended=after.claimed_at, end=stop or after.reason)
