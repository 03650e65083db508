"""Keeping copies of declarations: a supervisor may submit what it once read when the declaration is not at hand.

The stream's own user can't write them. Otherwise a job, or a person whom a supervisor impersonates, would choose what
is submitted, and as whom.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from airflow_kstream.model.clusters.authors import FolderKind
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError
from airflow_kstream.model.streams.contract import claims
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.versioned import read_any
from airflow_kstream.policy.authors import may_declare
from airflow_kstream.supervise.clusters.copies import CopyFile, adopted_name, copy_name, written_copy
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.state_dir import make_own_folder, own_folder
from airflow_kstream.supervise.clusters.write_once import FILE_MODE, replace_file
from airflow_kstream.supervise.streams.folder.cleanup import CLAIMS_KEPT
from airflow_kstream.supervise.streams.folder.run import StreamRun

# Of one stream: enough for the way back over a week of edits.
COPIES_KEPT = 10


def keep_copy(run: StreamRun) -> str:
    """Keep the run's declaration as the connection's principal; return why that failed, empty if it did not.

    Costs three requests where it is kept already. Nothing waits for it: what is at hand is submitted all the same.
    """
    try:
        with _as_supervisor(run) as session:
            if may_declare(session.state.user, session.state.look().supervisors):
                _keep(run, session)
    except KstreamError as error:
        return f"no copy of its declaration is kept: {error.without_advice}"
    return ""


def keep_word_on_adopted(run: StreamRun, application: str, user: str) -> None:
    """Keep a person's word that the application to be adopted runs as this user.

    Raises Denied: when the connection's principal is not a supervisor: its word on others' applications would not
    count.
    """
    with _as_supervisor(run) as session:
        supervisors = session.state.look().supervisors
        if not may_declare(session.state.user, supervisors):
            why = f"only {supervisors} may give a stream of {session.state.path} an application of another user"
            raise Denied(why, tried=f"adopt {application}", principal=str(session.identity))
        folder = _folder(run, session)
        _make(session, folder)
        name = adopted_name(application, user)
        session.hdfs.write(f"{folder}/{name}", "", overwrite=True, permission=FILE_MODE)


@contextmanager
def _as_supervisor(run: StreamRun) -> Iterator[ClusterSession]:
    if run.session.identity == run.cluster.watcher:
        yield run.session
        return
    with open_session(run.cluster, run.cluster.watcher) as session:
        yield session


def _folder(run: StreamRun, session: ClusterSession) -> str:
    return f"{own_folder(session.hdfs, session.state.path, FolderKind.DECLARED)}/{run.id}"


def _make(session: ClusterSession, folder: str) -> None:
    for path in (folder.rpartition("/")[0], folder):
        make_own_folder(session.hdfs, path, FolderKind.DECLARED.mode)


def _keep(run: StreamRun, session: ClusterSession) -> None:
    user = run.session.state.user if run.acts_as_stream else ""
    folder, name = _folder(run, session), copy_name(fingerprint(run.spec), user)
    path = f"{folder}/{name}"
    if _says(session, path) == _spec_in(written_copy(run.spec, "")):
        return
    _make(session, folder)
    yarn_user = run.session.yarn.user() if run.acts_as_stream else None
    replace_file(session.hdfs, path, written_copy(run.spec, yarn_user or ""))
    run.session.copies.look_again(run.id)
    # The copy stands, whatever fails here: a claim that can't be read may need any of the others.
    with suppress(KstreamError):
        _forget(run, session, folder)


def _says(session: ClusterSession, path: str) -> object:
    with suppress(KstreamError):
        return _spec_in(session.hdfs.read(path))
    return None


def _spec_in(text: str) -> object:
    with suppress(InvalidInput):
        return read_any(text)[1].get("spec")
    return None


def _forget(run: StreamRun, session: ClusterSession, folder: str) -> None:
    """Delete our own old copies, but those of the last generations: on the way back one of them is submitted."""
    own = [CopyFile(f"{folder}/{file.name}", file) for file in session.hdfs.list(folder)]
    copies = sorted((file for file in own if file.fingerprint), key=lambda file: file.status.modified)
    if len(copies) <= COPIES_KEPT:
        return
    needed = {claim.spec_fingerprint for claim in _last_claims(run)}
    for file in copies[:-COPIES_KEPT]:
        if file.fingerprint not in needed:
            session.hdfs.delete(file.path)


def _last_claims(run: StreamRun) -> Iterator[Claim]:
    for number in claims(run.folder.names())[-CLAIMS_KEPT:]:
        yield run.folder.claim_of(number)
