"""The checkpoints and savepoints of a Flink job on HDFS: which are complete, and how a dead job is kept from more."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.hdfs_path import as_word, path_in
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.streams.flink_job import FlinkCheckpoint, job_of
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec
from airflow_kstream.policy.streams.flink.flink_submission import checkpoints_folder, savepoints_folder
from airflow_kstream.policy.streams.flink.resume import gone, resume_point, undecided

if TYPE_CHECKING:
    from airflow_kstream.model.streams.observation import Observation
    from airflow_kstream.supervise.clusters.session import ClusterSession

METADATA = "_metadata"
_CHECKPOINT = re.compile(r"chk-(\d{1,18})")
# Checkpoints.storeCheckpointMetadata: a magic number, the format's version, and the checkpoint's number (since 1.3).
_HEAD = struct.Struct(">IiQ")
_MAGIC = 0x4960672D
# Those who may write there write nothing more; everybody may read it.
_CLOSED, _OPEN = "555", "755"


def resume(session: ClusterSession, observation: Observation) -> ResumePoint:
    """Return where the next generation begins. Raises Conflict: as `resume_point`, and when what that names is gone."""
    claim, left = observation.claim, tuple[FlinkCheckpoint, ...]()
    job = job_of(observation.stream, claim) if claim else None
    # What it ran with counts, and not what is declared now.
    if claim and job and isinstance(claim.spec, FlinkStreamSpec):
        # What a stranger put there is no state of this job's.
        ours = frozenset({session.state.user, *([observation.current.user] if observation.current else [])})
        left = points_of(session.hdfs, claim.spec, job, ours)
    point = resume_point(observation, left)
    if claim and job and not left and not observation.placed:
        _require_nothing_left(session.hdfs, observation, claim, job)
    if not point.fresh:
        try:
            number(session.hdfs, point.path)
        except NotFound as missing:
            raise gone(observation, point, "it is gone") from missing
        except InvalidInput as error:
            raise gone(observation, point, error.message) from error
    return point


def close_former(session: ClusterSession, observation: Observation) -> None:
    """Close the checkpoints of the newest generation, which is dead.

    Raises Denied: when they are not ours to close, and no person said where to begin.
    """
    claim = observation.claim
    job = job_of(observation.stream, claim) if claim else None
    if claim is None or job is None or not isinstance(claim.spec, FlinkStreamSpec):
        return
    spec = claim.spec
    try:
        close(session.hdfs, spec, job)
    except Denied as denied:
        # Who says where to begin knows what became of it; its owner alone could close it.
        if observation.placed:
            return
        folder, name = checkpoints_folder(spec, job), observation.stream.name
        message = (
            f"{denied.message.rstrip('.')}; generation {observation.generation} could complete another state while its "
            f"successor runs. Once its owner has closed it with `hdfs dfs -chmod 555 {as_word(folder)}`, run "
            f"`kstream streams start {name} --resume PATH` with the newest of what is in there"
        )
        raise Denied(message, tried=denied.tried, server=denied.server, principal=denied.principal) from denied


def _require_nothing_left(hdfs: Hdfs, observation: Observation, claim: Claim, job: str) -> None:
    """Check that a generation which left nothing of ours left nothing at all: its successor would go back to where it
    began. Raises Conflict: when that is not so, or can't be told."""
    if not isinstance(claim.spec, FlinkStreamSpec):
        raise undecided(observation, f"where generation {claim.generation} was left can't be told: {claim.doubt}")
    if others := points_of(hdfs, claim.spec, job):
        newest = max(others, key=lambda point: point.number)
        why = "which the user of no known application of this stream owns"
        raise undecided(observation, f"generation {claim.generation} left {newest.path}, {why}")


def read_point(session: ClusterSession, path: str) -> ResumePoint:
    """Return the state that a person names. Raises InvalidInput: when no job can begin with it. Raises Denied: when it
    can't be read."""
    plain, tried, ours = path_in(path), f"look at {path}", session.cluster.default_fs.rstrip("/")
    if plain is None or (path.startswith("hdfs://") and not path.startswith((f"{ours}/", "hdfs:///"))):
        raise InvalidInput(f"{path} is not on {ours}, where its checkpoints are", tried=tried)
    try:
        return ResumePoint(plain, number(session.hdfs, plain))
    except NotFound:
        raise InvalidInput(f"{plain} has no {METADATA}: it is not a complete savepoint", tried=tried) from None


def close(hdfs: Hdfs, spec: FlinkStreamSpec, job: str) -> None:
    """Keep a job, if anything of it still lives, from completing another state, and its sinks from committing.

    Each checkpoint makes a folder of its own. So does the savepoint of a stop, in a folder that the job makes first; if
    that is not there, it is made here. Then the folders that the job has already made are closed unless they are
    complete: what is complete by then is complete for good.
    """
    checkpoints, savepoints = checkpoints_folder(spec, job), savepoints_folder(spec, job)
    with suppress(Denied):
        # Where its user may make none, its job makes none either.
        hdfs.make_folder(savepoints, _CLOSED)
    for folder in (checkpoints, savepoints):
        with suppress(NotFound):
            hdfs.change_mode(folder, _CLOSED)
    made = _checkpoints(hdfs, checkpoints).values()
    for path in (*(f"{checkpoints}/{name}" for name in made), *_folders(hdfs, savepoints)):
        if METADATA not in hdfs.names(path):
            # Into what is somebody else's in our folder, our job could write nothing either.
            with suppress(NotFound, Denied):
                hdfs.change_mode(path, _CLOSED)


def points_of(
    hdfs: Hdfs, spec: FlinkStreamSpec, job: str, owners: Collection[str] | None = None
) -> tuple[FlinkCheckpoint, ...]:
    """Return the complete checkpoints and savepoints of a job that one of these users owns; by default, anybody."""
    return (*checkpoints_of(hdfs, spec, job, owners), *savepoints_of(hdfs, spec, job, owners))


def newest_savepoint(hdfs: Hdfs, spec: FlinkStreamSpec, job: str, owners: Collection[str]) -> FlinkCheckpoint | None:
    """Return the newest complete savepoint of a job that one of these users owns, None if there is none."""
    return max(savepoints_of(hdfs, spec, job, owners), key=lambda point: point.number, default=None)


def checkpoints_of(
    hdfs: Hdfs, spec: FlinkStreamSpec, job: str, owners: Collection[str] | None = None
) -> tuple[FlinkCheckpoint, ...]:
    """Return the complete checkpoints of a job."""
    folder, found = checkpoints_folder(spec, job), list[FlinkCheckpoint]()
    for each, name in _checkpoints(hdfs, folder).items():
        # Those that are made, and those that are removed as we look, have none.
        with suppress(NotFound):
            file = hdfs.status(f"{folder}/{name}/{METADATA}")
            if file.length and (owners is None or file.owner in owners):
                found.append(FlinkCheckpoint(each, file.modified, f"{folder}/{name}", is_savepoint=False))
    return tuple(found)


def savepoints_of(
    hdfs: Hdfs, spec: FlinkStreamSpec, job: str, owners: Collection[str] | None = None
) -> tuple[FlinkCheckpoint, ...]:
    """Return the complete savepoints of a job, in the folder that it alone has."""
    folder, found = savepoints_folder(spec, job), list[FlinkCheckpoint]()
    for entry in hdfs.list(folder):
        # One that is being made has no head yet.
        with suppress(NotFound, InvalidInput):
            path = f"{folder}/{entry.name}"
            file = hdfs.status(f"{path}/{METADATA}")
            if owners is None or file.owner in owners:
                found.append(FlinkCheckpoint(number(hdfs, path), file.modified, path, is_savepoint=True))
    return tuple(found)


def remove(hdfs: Hdfs, spec: FlinkStreamSpec, job: str) -> Iterator[str]:
    """Delete the checkpoints and savepoints of a dead job, and yield each folder that was there."""
    folders = checkpoints_folder(spec, job), savepoints_folder(spec, job)
    closed = (*folders, *(path for folder in folders for path in _folders(hdfs, folder)))
    for path in closed:
        with suppress(NotFound):
            hdfs.change_mode(path, _OPEN)
    yield from (path for path in folders if hdfs.delete(path, recursive=True))


def number(hdfs: Hdfs, path: str) -> int:
    """Return the number of a savepoint or checkpoint. Raises NotFound: when there is none. Raises InvalidInput: when it
    is not complete."""
    head = hdfs.read_part(f"{path}/{METADATA}", 0, _HEAD.size)
    if len(head) < _HEAD.size or _HEAD.unpack(head)[0] != _MAGIC:
        raise InvalidInput(f"{path}/{METADATA} is none of Flink's", tried=f"look at {path}")
    return int(_HEAD.unpack(head)[2])


def _checkpoints(hdfs: Hdfs, folder: str) -> dict[int, str]:
    """Return the names of the folders of checkpoints, complete or not, by their numbers."""
    matches = map(_CHECKPOINT.fullmatch, sorted(hdfs.names(folder)))
    return {int(match[1]): match[0] for match in matches if match}


def _folders(hdfs: Hdfs, folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{entry.name}" for entry in hdfs.list(folder) if entry.is_folder)
