"""Cleanup after ended generations: their engine's folders, which hold a copy of the keytab, and old files of ours."""

from __future__ import annotations

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import (
    claim_file,
    claims,
    cleaned_marker,
    generation_of_file,
    is_cleaned_marker,
)
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.supervise.streams.folder.memory import forget_old_records
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

# Enough to see how the last restarts went.
CLAIMS_KEPT = 10


def clean_up(run: StreamRun, observation: Observation) -> tuple[str, ...]:
    """Delete what dead generations left, and return the deleted folders; nothing if the claim's version is newer.

    An application is cleaned up after once: its marker stays for as long as the ResourceManager lists it.
    """
    if not run.declared or (observation.claim and observation.claim.foreign):
        return ()
    deleted, ended = _clean_up_after_the_dead(run, observation)
    if ended:
        # Only then is there more to delete than before: one that stopped in good order leaves no folder itself.
        deleted += run.engine.remove_superseded(run.session, run.spec, _claims(run, observation))
    if observation.generation > CLAIMS_KEPT:
        forget_before(run.folder, observation.generation - CLAIMS_KEPT + 1, observation.files)
    forget_old_records(run.folder, observation.files)
    run.folder.forget_drafts(observation.files, observation.now)
    return deleted


def _claims(run: StreamRun, observation: Observation) -> tuple[Claim, ...]:
    """Return the newest claims, in descending order, as far as they can be read."""
    numbers = [number for number in claims(observation.files) if number <= observation.generation]
    found: list[Claim] = []
    for number in reversed(numbers[-CLAIMS_KEPT:]):
        try:
            claim = run.folder.claim(observation.files & {claim_file(number)}, observation.claim)
        except InvalidInput:
            break
        if claim is None:
            break
        found.append(claim)
    return tuple(found)


def forget_before(folder: StreamFolder, generation: int, names: frozenset[str]) -> None:
    """Delete the files of generations before this one; the newest claim always stays."""
    numbered = ((generation_of_file(name), name) for name in sorted(names))
    folder.forget(name for number, name in numbered if number is not None and number < generation)


def _clean_up_after_the_dead(run: StreamRun, observation: Observation) -> tuple[tuple[str, ...], bool]:
    """Return the deleted folders, and whether an application had ended after which nobody had cleaned up."""
    deleted: list[str] = []
    dead = {cleaned_marker(app.id): app for _, app in observation.applications if not app.alive}
    fresh = {marker: app for marker, app in dead.items() if marker not in observation.files}
    for marker, app in fresh.items():
        folders = run.engine.leftovers(app, run.cluster, run.spec)
        deleted += [folder for folder in folders if run.session.hdfs.delete(folder, recursive=True)]
        run.folder.mark(marker)
    run.folder.forget(name for name in sorted(observation.files) if is_cleaned_marker(name) and name not in dead)
    return tuple(deleted), bool(fresh)
