"""Cleanup after ended generations: their engine's folders, which hold a copy of the keytab, and old files of ours."""

from __future__ import annotations

from airflow_kstream.model.contract import cleaned_marker, generation_of_file, is_cleaned_marker, number_of_desired
from airflow_kstream.model.observation import Observation
from airflow_kstream.supervise.streams.past_ends import forget_old_records
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import DESIRED_KEPT, StreamFolder

# Enough to see how the last restarts went.
CLAIMS_KEPT = 10


def clean_up(run: StreamRun, observation: Observation) -> tuple[str, ...]:
    """Delete what dead generations left, and return the deleted folders; nothing if the claim's version is newer.

    An application is cleaned up after once: its marker stays for as long as the ResourceManager lists it.
    """
    if observation.claim and observation.claim.newer:
        return ()
    deleted = _clean_up_after_the_dead(run, observation)
    if observation.generation > CLAIMS_KEPT:
        forget_before(run.folder, observation.generation - CLAIMS_KEPT + 1, observation.files)
    _forget_old_words(run.folder, observation.files)
    forget_old_records(run.folder, observation.files)
    run.folder.forget_drafts(observation.files, observation.now)
    return deleted


def forget_before(folder: StreamFolder, generation: int, names: frozenset[str]) -> None:
    """Delete the files of generations before this one; the newest claim always stays."""
    numbered = ((generation_of_file(name), name) for name in sorted(names))
    folder.forget(name for number, name in numbered if number is not None and number < generation)


def _forget_old_words(folder: StreamFolder, names: frozenset[str]) -> None:
    """Delete all but the last desired states; the newest always stays."""
    numbered = sorted((number, name) for name in names if (number := number_of_desired(name)) is not None)
    folder.forget(name for _, name in numbered[:-DESIRED_KEPT])


def _clean_up_after_the_dead(run: StreamRun, observation: Observation) -> tuple[str, ...]:
    deleted: list[str] = []
    dead = {cleaned_marker(app.id): app for _, app in observation.applications if not app.alive}
    for marker, app in dead.items():
        if marker not in observation.files:
            folders = run.engine.leftovers(app, run.cluster, run.spec)
            deleted += [folder for folder in folders if run.session.hdfs.delete(folder, recursive=True)]
            run.folder.mark(marker)
    run.folder.forget(name for name in sorted(observation.files) if is_cleaned_marker(name) and name not in dead)
    return tuple(deleted)
