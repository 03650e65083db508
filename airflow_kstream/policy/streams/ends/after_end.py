"""What follows an end that nobody planned: its record, then a growing pause, then a successor or a person's order.

An end is not the stream's own fault if a server was silent, or if several streams share its cause. In safe mode a
driver can't leave its error on HDFS, nor a NodeManager its log: the proof is lost together with the server. A request
that was refused for it at about that time is another proof.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.hdfs_health import SafeMode
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.generation_end import EndClues, EndKind, GenerationEnd, PastEnd
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Note, Phase, Settled, Step, Wait
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.ends.death import ran
from airflow_kstream.policy.streams.ends.ends import end_of
from airflow_kstream.policy.streams.ends.restart_pace import Attempt, next_attempt
from airflow_kstream.policy.streams.pulse.heartbeat import verified, works

# Of a NameNode (FSNamesystem.newSafemodeException, which HA wraps in a RetriableException).
_SAFE_MODE = re.compile(r"\bSafeModeException\b")
# Refusals that lie further apart are of two safe modes.
_APART = timedelta(minutes=15)
# Ends with an exit code, and no other word.
_NAMELESS = {EndKind.CODE, EndKind.UNKNOWN}


def tells_safe_mode(words: str) -> bool:
    """Return whether a failure of these words shows that HDFS is in safe mode."""
    return _SAFE_MODE.search(words) is not None


def refused(before: SafeMode | None, now: datetime) -> SafeMode:
    """Return when HDFS was last known to be in safe mode, after one more refusal."""
    return replace(before, until=now) if before and now - before.until <= _APART else SafeMode(now, now)


def in_safe_mode(policy: FailurePolicy, end: PastEnd, known: SafeMode | None) -> PastEnd:
    """Return the end as one of a silent HDFS, if nothing names its error and HDFS was in safe mode at about that time.

    A job whose error is known ended of that.
    """
    named = end.fingerprint or end.clues.silent or end.killed_by or end.clues.log_error
    if known is None or named or end.kind not in _NAMELESS or not known.covers(end.at, policy.together_within):
        return end
    return replace(end, clues=replace(end.clues, silent="HDFS"))


def one_cause(one: PastEnd, other: PastEnd) -> bool:
    """Return whether two ends have one cause: the same error, or the same silent server, which has many errors."""
    return one.fingerprint == other.fingerprint or bool(one.clues.silent and one.clues.silent == other.clues.silent)


def continues(before: PastEnd | None, end: PastEnd) -> bool:
    """Return whether what the environment did to the last generation still lasts."""
    return before is not None and before.shared and one_cause(before, end) and not end.worked


def believed(end: PastEnd, *, spec_worked: bool) -> PastEnd:
    """Return the end as the environment's if it names a silent server, and its spec has worked before.

    One that never worked may name a server that does not exist.
    """
    return replace(end, shared=True) if end.clues.silent and (end.worked or spec_worked) else end


def cause_of(end: PastEnd) -> str:
    """Say what the environment did."""
    return f"{end.clues.silent} did not answer" if end.clues.silent else "other streams ended of the same error"


def trouble(policy: FailurePolicy, observation: Observation) -> str:
    """Return what of the environment ended the stream, until a generation of it works again; empty if nothing did."""
    end = observation.folder.ends[-1] if observation.folder.ends else None
    if end is None or not end.shared or observation.desired.state is not DesiredState.RUNNING:
        return ""
    if observation.generation > end.generation and works(policy, observation):
        return ""
    return end.clues.silent or end.fingerprint


# In characters. YARN repeats whole stack traces; the first lines name the cause.
_LONGEST_DIAGNOSTICS = 300
_WORDS: Mapping[EndKind, str] = {
    EndKind.CREDENTIALS: "died of a dead token",
    EndKind.PREEMPTED: "was preempted",
    EndKind.NODE_LOST: "lost its node",
    EndKind.LIFETIME: "reached YARN's lifetime limit",
    EndKind.STATE: "has no place for the state with which it was to begin",
    EndKind.NEVER_RAN: "never ran",
    EndKind.DONE: "ended successfully",
}
# Another try may not mend these: somebody has to look at the job, or wanted it to end.
_A_PERSONS = {EndKind.CODE, EndKind.MEMORY, EndKind.UNKNOWN, EndKind.KILLED, EndKind.STATE}


def pause_after_end(spec: StreamSpec, observation: Observation, *, past_horizon: bool) -> Note | Settled | Wait | None:
    """Return what comes before a successor of a generation whose end nobody planned; None when it may follow now.

    A pause as short as the first one is waited out in place, as the proof of a death is.
    """
    end = recorded_end(observation)
    if end is None:
        return Note(_unrecorded(observation, past_horizon=past_horizon), how_it_ended(observation))
    if end.killed_by and not _cleared(observation, end):
        advice = f"nothing starts it until `kstream streams start {spec.name}`"
        return Settled(Phase.KILLED, f"{how_it_ended(observation)}; {advice}")
    if state_refused(spec, observation):
        return Settled(Phase.BACKING_OFF, _refused_words(spec, observation), breaker=True)
    attempt = _next_attempt(spec, observation)
    if attempt is None or attempt.at <= observation.now:
        return None
    why = _waits(spec, observation, attempt)
    if attempt.at - observation.now <= spec.failure.backoff:
        return Wait(attempt.at, why)
    return Settled(Phase.BACKING_OFF, why, attempt.at, breaker=bool(attempt.breaker))


def state_refused(spec: StreamSpec, observation: Observation) -> bool:
    """Return whether the newest generation was refused the state with which it was to begin, and the next one would be,
    too: no person has spoken since, it does not go back to a former spec, and the declared one is the same."""
    end, claim = recorded_end(observation), observation.claim
    if end is None or end.kind is not EndKind.STATE or end.back_to or _cleared(observation, end):
        return False
    declared = fingerprint(spec)
    # Where a former spec took the place of the declared one, both count as submitted.
    submitted = {claim.spec_fingerprint, claim.instead_of and claim.instead_of.fingerprint} if claim else {declared}
    return declared in submitted


def needs_a_person(spec: StreamSpec, observation: Observation) -> bool:
    """Return whether somebody has to know of the end that was just recorded, the last of the observation's ends.

    A stream that the environment ended comes back by itself; one that goes back to its former spec is not as declared.
    """
    end, attempt = observation.folder.ends[-1], _next_attempt(spec, observation)
    return bool(attempt and attempt.breaker) or bool(end.back_to) or (end.kind in _A_PERSONS and not end.shared)


def waits_for_a_person(observation: Observation, step: Step) -> timedelta | None:
    """Return for how long nothing but a person's order has kept the stream dead, by the NameNode's clock; None if
    nothing of that kind does.

    It follows from the record of the end alone, so each watcher, after whatever restart, counts the same days.
    """
    end = recorded_end(observation)
    if end is None or not isinstance(step, Settled) or step.phase is not Phase.KILLED:
        return None
    return max(observation.now - end.at, timedelta())


def end_message(observation: Observation, how: str) -> str:
    """Return the words for somebody who has to know of the end that was just recorded."""
    back_to = observation.folder.ends[-1].back_to
    return f"{how}; its changed spec committed nothing, and that of generation {back_to} follows" if back_to else how


def ended_at(observation: Observation) -> datetime | None:
    """Return when the newest generation ended, by the NameNode's clock, as orders are; None if it is not known.

    The record of the end has it, as far as it was known then. Before there is one: not before the application could
    have lived that long after its claim, not before the last move of its checkpoint, and not in the future.
    """
    app, claim, moved = observation.current, observation.claim, observation.last_move
    if end := recorded_end(observation):
        return end.at
    finished = observation.yarn.ended or (app.finished if app else claim.claimed_at if claim else None)
    if finished is None:
        return None
    ours = claim is not None and claim.submitted_by_us and claim.generation == observation.generation
    lived = app.lasted if app else None
    earliest = [claim.claimed_at + lived] if claim and ours and lived is not None else []
    return min(max([finished, *earliest, *([moved] if moved else [])]), observation.now)


def ended_by(observation: Observation) -> datetime:
    """Return when the newest generation ended; now, where nothing tells when that was."""
    app = observation.current
    told = recorded_end(observation) or observation.yarn.ended or (app and app.finished)
    return (ended_at(observation) if told else None) or observation.now


def recorded_end(observation: Observation) -> PastEnd | None:
    """Return the record of the newest generation's end, None if there is none yet."""
    newest = observation.folder.ends[-1] if observation.folder.ends else None
    return newest if newest and newest.generation == observation.generation else None


def how_it_ended(observation: Observation) -> str:
    """Return the end of the newest generation in the words of YARN, as far as it still has them."""
    app, number = observation.current, observation.generation
    if app is None:
        return f"no application of generation {number} is left"
    why = textwrap.shorten(app.diagnostics, _LONGEST_DIAGNOSTICS, placeholder=" ...")
    words = f"{app.state}/{app.final_status}{f', {why}' if why else ''}"
    end = _end(observation)
    if end.kind is EndKind.KILLED:
        return f"{app.id} was killed by {end.killed_by}: {words}"
    cause = f" ({end.cause})" if end.kind not in {EndKind.UNKNOWN, EndKind.DONE} else ""
    logged = _log_error(observation)
    log = f"; its driver's log ends with: {' '.join(logged.split())}" if logged else ""
    return f"{app.id} ended by itself{cause}: {words}{log}"


def reason_to_follow(observation: Observation) -> str:
    """Return the reason for the successor of a generation whose end nobody planned."""
    number, end = observation.generation, recorded_end(observation)
    if observation.current is None:
        return f"no application of generation {number} is left"
    kind = end.kind if end else EndKind.UNKNOWN
    cause = f" ({kind})" if kind is not EndKind.UNKNOWN else ""
    return f"generation {number} {_WORDS.get(kind, f'ended by itself{cause}')}"


def _unrecorded(observation: Observation, *, past_horizon: bool) -> PastEnd:
    app, claim, now, end = observation.current, observation.claim, observation.now, _end(observation)
    claimed = claim.claimed_at if claim and claim.generation == observation.generation else None
    foreign = end.killed_by if app and end.killed_by not in observation.yarn.ours | {app.user} else ""
    return PastEnd(
        generation=observation.generation,
        kind=EndKind.CREDENTIALS if past_horizon and not foreign else end.kind,
        fingerprint=end.fingerprint,
        at=ended_by(observation),
        claimed=claimed or (app.started if app and app.started else now),
        lasted=_lasted(observation),
        worked=verified(observation),
        killed_by=foreign,
        clues=EndClues(silent=end.silent, credential=end.credential, log_error=observation.driver.log_error),
    )


def _end(observation: Observation) -> GenerationEnd:
    app = observation.current
    if app is None and not ran(observation):
        return GenerationEnd(EndKind.NEVER_RAN)
    if app and app.succeeded:
        return GenerationEnd(EndKind.DONE)
    return end_of(app.diagnostics if app else "", observation.driver.failure or _log_error(observation))


def _log_error(observation: Observation) -> str:
    recorded = recorded_end(observation)
    return recorded.clues.log_error if recorded else observation.driver.log_error


def _lasted(observation: Observation) -> timedelta:
    """Return how long it lived; of one that YARN has forgotten, for how long it is known to have moved on."""
    app, claim, moved = observation.current, observation.claim, observation.last_move
    if app and app.lasted is not None:
        return app.lasted
    return max(moved - claim.claimed_at, timedelta()) if claim and moved else timedelta()


def _next_attempt(spec: StreamSpec, observation: Observation) -> Attempt | None:
    return next_attempt(spec.failure, observation.folder.ends, str(observation.stream), observation.desired.at)


def _cleared(observation: Observation, end: PastEnd) -> bool:
    spoken = observation.desired.at
    return spoken is not None and spoken >= end.at


def _waits(spec: StreamSpec, observation: Observation, attempt: Attempt) -> str:
    how, then = how_it_ended(observation), f"{_moment(attempt.at)}, or after `kstream streams start {spec.name}`"
    if attempt.breaker:
        return f"{how}; its circuit breaker is open, because {attempt.breaker}: one attempt at {then}"
    end = observation.folder.ends[-1]
    shared = f"; {cause_of(end)}" if end.shared else ""
    return f"{how}{shared}; backing off: it is followed at {then}"


def _refused_words(spec: StreamSpec, observation: Observation) -> str:
    return (
        f"{how_it_ended(observation)}; its circuit breaker is open, because its job lacks an operator of that state, "
        f"which no other try gives it. Nothing follows until `kstream streams start {spec.name} "
        f"--allow-non-restored-state`, which loses the state of that operator; or until the job that left the state is "
        f"declared again, or `kstream streams start {spec.name}` after its file was mended"
    )


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
