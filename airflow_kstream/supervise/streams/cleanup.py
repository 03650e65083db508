"""Cleanup after ended generations: their engine's folders, which hold a copy of the keytab, and old claims."""

from __future__ import annotations

from airflow_kstream.model.observation import Observation
from airflow_kstream.supervise.streams.run import StreamRun

# Enough to see how the last restarts went.
_CLAIMS_KEPT = 10


def clean_up(run: StreamRun, observation: Observation) -> tuple[str, ...]:
    """Delete what dead generations left, and return the deleted folders; nothing if the claim's version is newer."""
    if observation.claim and observation.claim.newer:
        return ()
    dead = [app for _, app in observation.applications if not app.alive]
    left = [folder for app in dead for folder in run.engine.leftovers(app, run.cluster, run.spec)]
    deleted = [folder for folder in left if run.session.hdfs.delete(folder, recursive=True)]
    if observation.generation > _CLAIMS_KEPT:
        run.folder.forget_before(observation.generation - _CLAIMS_KEPT + 1, observation.files)
    return tuple(deleted)
