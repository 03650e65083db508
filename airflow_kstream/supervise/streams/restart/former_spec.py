"""The spec of an earlier generation, from its claim: found when a changed one failed, and submitted in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import claim_file, claims
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import FormerSpec
from airflow_kstream.model.streams.stream import POLICIES, StreamSpec
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.ends.after_end import believed
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.former_spec import SpecChange, committed, may_go_back, why_it_stays
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.streams.folder.cleanup import CLAIMS_KEPT
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.blocked import require_allowed


def with_fallback_spec(
    run: StreamRun, observation: Observation, ends: Sequence[PastEnd], tell: Callable[[str], None]
) -> tuple[PastEnd, ...]:
    """Return the ends; the last names the generation whose spec follows it, if its own is new and committed nothing.

    It reads earlier claims, which costs up to twenty requests, once for each end before a commit.
    """
    claim, end = observation.claim, ends[-1]
    if claim is None or claim.generation != end.generation or not claim.submitted_by_us or not may_go_back(ends):
        return tuple(ends)
    former = last_that_committed(run, observation)
    if former is None or former.spec_fingerprint == claim.spec_fingerprint:
        return tuple(ends)
    if why := why_it_stays(run.spec, former):
        tell(f"it can't go back to the spec of generation {former.generation}, which committed last: {why}")
        return tuple(ends)
    return (*ends[:-1], replace(end, back_to=former.generation))


def mark_server_outage(run: StreamRun, observation: Observation, ends: Sequence[PastEnd]) -> tuple[PastEnd, ...]:
    """Return the ends; the last is the environment's if it names a silent server and its spec has worked before."""
    claim, end = observation.claim, ends[-1]
    if not end.clues.silent or end.shared or claim is None:
        return tuple(ends)
    former = None if end.worked else last_that_committed(run, observation)
    spec_worked = former is not None and former.spec_fingerprint == claim.spec_fingerprint
    return (*ends[:-1], believed(end, spec_worked=spec_worked))


def last_that_committed(run: StreamRun, observation: Observation) -> Claim | None:
    """Return the claim of the last generation before the newest one that committed, if we submitted it."""
    newest_first = list(_claims(run, observation))
    pairs = zip(newest_first[1:], newest_first, strict=False)
    return next((claim for claim, later in pairs if claim.submitted_by_us and committed(claim, later)), None)


def to_be_submitted(run: StreamRun, observation: Observation) -> StreamRun:
    """Return the run whose spec the next generation is submitted with: the declared one, or a former one.

    Raises InvalidInput: when there is a former one, and it can't be submitted as it was.
    """
    former = SpecChange(run.spec, observation).former
    if former is None:
        return run
    subject = with_spec_of(run, _claim_of(run, observation, former))
    require_allowed(subject.spec, run.cluster, observation.claim)
    return subject


def with_spec_of(run: StreamRun, claim: Claim) -> StreamRun:
    """Return the run with a claim's spec and the declared policies, which hold for every generation.

    Raises InvalidInput: when the claim's spec is not known, holds a masked secret, or is another identity's.
    """
    tried = f"submit {run.spec.name} with the spec of generation {claim.generation}"
    if isinstance(claim.spec, UnknownSpec):
        raise InvalidInput(claim.doubt, tried=tried)
    if not claim.file.copied:
        why = f"no supervisor kept the declaration that generation {claim.generation} was submitted with"
        raise InvalidInput(why, tried=tried)
    policies = {name: getattr(run.spec, name) for name in POLICIES}
    spec: StreamSpec = replace(claim.spec, on_change=run.spec.on_change, **policies)
    require_submittable(spec, run.cluster)
    identity = identity_of(spec, run.cluster)
    if identity != run.session.identity:
        raise InvalidInput(f"it acts as {identity}, and the declared one as {run.session.identity}", tried=tried)
    return replace(run, spec=spec)


def _claim_of(run: StreamRun, observation: Observation, former: FormerSpec) -> Claim:
    newest = observation.claim
    if newest and newest.generation == former.generation:
        return newest
    claim = run.folder.claim(observation.files & {claim_file(former.generation)})
    if claim is None:
        raise InvalidInput("its claim is gone", tried=f"read the spec of generation {former.generation}")
    return claim


def _claims(run: StreamRun, observation: Observation) -> Iterator[Claim]:
    """Yield the newest claims, the newest first, as far as they can be read. No generation has a stranger's number."""
    newest = observation.claim
    if newest is None:
        return
    yield newest
    earlier = [number for number in claims(observation.files) if number < newest.generation]
    for number in reversed(earlier[1 - CLAIMS_KEPT :]):
        with suppress(InvalidInput):
            if claim := run.folder.claim(observation.files & {claim_file(number)}):
                yield claim
                continue
        return
