"""Cleanup after ended generations: their engine's folders, which hold a copy of the keytab, and old files of ours."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.streams.contract import (
    claim_file,
    claims,
    cleaned_marker,
    generation_of_file,
    is_cleaned_marker,
)
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.memory import forget_old_records
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

# Enough to see how the last restarts went.
CLAIMS_KEPT = 10
EngineFor = Callable[[StreamSpec], Engine]


def clean_up(run: StreamRun, observation: Observation, engine_for: EngineFor) -> Iterator[str]:
    """Delete what dead generations left, and yield the deleted folders; nothing if the claim's version is newer.

    `engine_for` returns the engine of what was submitted, which may not be the one that is declared now.

    An application is cleaned up after once: its marker stays for as long as the ResourceManager lists it.

    Raises Denied: at the end, when a folder is another user's, as after a change of the stream's.
    """
    if not run.declared or (observation.claim and observation.claim.foreign):
        return
    refused = yield from _clean_up_after_the_dead(run, observation, engine_for)
    if observation.generation > CLAIMS_KEPT:
        forget_before(run.folder, observation.generation - CLAIMS_KEPT + 1, observation.files)
    forget_old_records(run.folder, observation.files)
    run.folder.forget_drafts(observation.files, observation.now)
    if refused:
        raise refused


def _claims(run: StreamRun, observation: Observation) -> tuple[Claim, ...]:
    """Return the newest claims, in descending order, as far as they can be read."""
    numbers = [number for number in claims(observation.files) if number <= observation.generation]
    found: list[Claim] = []
    for number in reversed(numbers[-CLAIMS_KEPT:]):
        claim = _claim(run, observation, number)
        if claim is None:
            break
        found.append(claim)
    return tuple(found)


def _claim(run: StreamRun, observation: Observation, number: int) -> Claim | None:
    """Return the claim of a generation; None if it is gone or can't be read."""
    try:
        return run.folder.claim(observation.files & {claim_file(number)}, observation.claim)
    except InvalidInput:
        return None


def forget_before(folder: StreamFolder, generation: int, names: frozenset[str]) -> None:
    """Delete the files of generations before this one; the newest claim always stays."""
    numbered = ((generation_of_file(name), name) for name in sorted(names))
    folder.forget(name for number, name in numbered if number is not None and number < generation)


def _clean_up_after_the_dead(
    run: StreamRun, observation: Observation, engine_for: EngineFor
) -> Generator[str, None, Denied | None]:
    """Yield the folders that are deleted, and return the last refusal: it keeps no other folder from being deleted."""
    dead = {cleaned_marker(app.id): (number, app) for number, app in observation.applications if not app.alive}
    fresh = {marker: one for marker, one in dead.items() if marker not in observation.files}
    refused, cleaned = None, list[str]()
    for marker, (number, app) in fresh.items():
        claim = _claim(run, observation, number)
        # What it was submitted with counts, and not what is declared now.
        spec = claim.spec if claim and isinstance(claim.spec, StreamSpec) else run.spec
        try:
            for folder in engine_for(spec).leftovers(app, run.cluster, spec):
                if run.session.hdfs.delete(folder, recursive=True):
                    yield folder
        except Denied as error:
            refused = error
            continue
        cleaned.append(marker)
    run.folder.forget(name for name in sorted(observation.files) if is_cleaned_marker(name) and name not in dead)
    if cleaned:
        # Only then is there more to delete than before: one that stopped in good order leaves no folder itself.
        try:
            yield from run.engine.remove_superseded(run.session, run.spec, _claims(run, observation))
        except Denied as error:
            return error
    # Only now is an application marked as cleaned up after: what failed above is tried again.
    for marker in cleaned:
        run.folder.mark(marker)
    return refused
