"""The parts of a reconcile that concern the owner of the stream's checkpoints.

A stream that is declared twice: each declaration would restart it for ever because of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError
from airflow_kstream.model.streams.contract import claim_file, newest_claim, stop_marker
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Phase, Settled, Stop
from airflow_kstream.policy.streams.ends.unclaimed import lost_claim
from airflow_kstream.policy.streams.restart.former_spec import DECLARED_SPEC_CHANGED, duel
from airflow_kstream.supervise.streams.checkpoint.ownership import (
    no_longer_declared,
    own,
    own_what_runs,
    release,
    require_available,
    require_owned,
)
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe

# Two declarations show after three claims; restarts for other reasons can lie between them.
_CLAIMS_READ = 6


def require_no_duel(run: StreamRun, observation: Observation) -> None:
    """Check that a restart for the declared spec is not one more move in a duel of two declarations.

    It reads the last claims, which costs a dozen requests; only such a restart needs it.

    Raises Conflict: when it is, with the supervisors that claimed for either of them.
    """
    if why := duel(run.spec, tuple(_claims(run, observation)), observation.now):
        raise Conflict(why, tried=f"restart {run.spec.name} with its declared spec")


def _claims(run: StreamRun, observation: Observation) -> Iterator[Claim]:
    if observation.claim is None:
        return
    yield observation.claim
    newest = observation.claim.generation
    for number in range(newest - 1, max(0, newest - _CLAIMS_READ), -1):
        # An unreadable claim of long ago shows no duel, and is not an obstacle.
        with suppress(InvalidInput):
            claim = run.folder.claim(observation.files & {claim_file(number)})
            if claim:
                yield claim


# Takes what was done, and why.
Record = Callable[[str, str], None]


def check_ownership_before_stop(run: StreamRun, observation: Observation, step: Stop) -> None:
    """Check, before a generation is stopped to be followed, that its successor may have its checkpoints.

    A forced restart is no exception: the declaration may name others than the running generation's.

    Raises Conflict: when it may not, or when the restart is the next move in a duel of two declarations.
    """
    if observation.desired.state is not DesiredState.RUNNING or stop_marker(step.generation) in observation.files:
        return
    if step.why == DECLARED_SPEC_CHANGED:
        require_no_duel(run, observation)
    require_available(run, observation)


def take_ownership_before_claim(run: StreamRun, observation: Observation, why: str, record: Record) -> None:
    """Own the declared checkpoints, and release those of the last generation that are no longer declared."""
    for path in own(run, observation):
        record(f"owns {path}", why)
    for path in release(run, no_longer_declared(run, observation.claim), "no longer declared"):
        record(f"released {path}", "it is no longer declared")


def check_ownership_before_submission(run: StreamRun, claim: Claim) -> None:
    """Check the owner again, now that the claim is there: a take-over writes its owner first, and then looks at claims.

    Raises Conflict: when somebody has given a checkpoint to another stream. The claim is then given up.
    """
    try:
        require_owned(run)
    except Conflict:
        run.take_fence(claim.fence)
        raise


def settle_ownership(
    run: StreamRun, observation: Observation, step: Settled, record: Record, tell: Callable[[str], None]
) -> str:
    """Own what runs and release what is stopped; return the reason if that was not possible.

    That a running generation's checkpoint is another stream's stops nothing: no successor is submitted, and the report
    says so.
    """
    if not run.declared or (observation.claim and observation.claim.foreign):
        return ""
    if lost := lost_claim(observation):
        tell(lost)
        return lost
    try:
        if step.phase is Phase.STOPPED:
            _release(run, observation, record)
        elif observation.current and observation.current.alive:
            for path in own_what_runs(run, observation):
                record(f"owns {path}", f"generation {observation.generation} writes it")
    except KstreamError as error:
        tell(f"the owner of a checkpoint is in doubt: {error}")
        return error.without_advice
    return ""


def _release(run: StreamRun, observation: Observation, record: Record) -> None:
    paths = (*run.spec.checkpoints, *no_longer_declared(run, observation.claim))
    for path in release(run, paths, "the stream was stopped"):
        record(f"released {path}", "the stream is stopped")
    if newest_claim(run.folder.names()) != newest_claim(observation.files):
        # Started again meanwhile: its supervisor looks at the owner after its claim, and this is the other half.
        own_what_runs(run, observe(run))
