"""A stream that is declared twice: each declaration would restart it for ever because of the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from airflow_kstream.model.errors import Conflict, InvalidInput
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.restart.spec_change import duel
from airflow_kstream.supervise.streams.folder.run import StreamRun

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
