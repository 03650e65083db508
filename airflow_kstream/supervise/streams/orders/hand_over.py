"""Handing a stream's folder over to another user: looking at it before and after the superuser's chown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.kerberos.identity import is_principal
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.hand_over import HandOverFacts
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.state_dir import ground_of
from airflow_kstream.supervise.streams.folder.registry import registered

_ALL = "rwx"


def user_named(session: ClusterSession, to: str) -> str:
    """Return the HDFS user whom these words mean: a short name, or the connection's own principal.

    Raises InvalidInput: for any other principal. Only HDFS's rules tell whom it takes that one for.
    """
    if to == session.identity.principal:
        return session.state.user
    if "@" not in to and "/" not in to and is_principal(f"{to}@REALM"):
        return to
    why = (
        f"whom HDFS takes {to!r} for can't be told from its text: give the stream's declaration, which can log in, or "
        "the user's short name, as `hdfs dfs -ls` shows it"
    )
    raise InvalidInput(why, tried="hand a stream over")


def hand_over_facts(session: ClusterSession, name: str, to: str) -> HandOverFacts:
    """Look at the stream's folder and its applications; `to` is the HDFS user who gets it.

    Raises NotFound: when the stream has no folder: its first start makes it. Raises InvalidInput: when the
    folder has too many files to be looked at.
    """
    stream = StreamId(name, session.cluster.state_dir)
    supervisors = session.state.look().supervisors
    status = _folder(session, stream)
    listed = session.hdfs.list(stream.folder)
    owners = {file.name: file.owner for file in listed}
    return HandOverFacts(
        stream,
        ground_of(status),
        status.acl,
        owners,
        supervisors,
        frozenset(file.user for file in session.copies.files(stream) if file.user),
        to,
        dict(_living(session, stream)),
    )


def _folder(session: ClusterSession, stream: StreamId) -> FileStatus:
    try:
        return session.hdfs.status(stream.folder)
    except NotFound as error:
        why = f"{stream.name} has no folder yet: its first start makes it, and nothing has to be handed over"
        raise NotFound(why, tried=error.tried, server=error.server, principal=error.principal) from None


def _living(session: ClusterSession, stream: StreamId) -> Iterator[tuple[str, str]]:
    """Yield the stream's living applications with their users: those with its tag, and one that was adopted."""
    for app in session.yarn.applications(stream.tag):
        if app.alive:
            yield app.id, app.user
    claim = registered(session, stream).newest
    if isinstance(claim, Claim) and claim.adoption.application:
        with suppress(NotFound):
            app = session.yarn.application(claim.adoption.application)
            if app.alive:
                yield app.id, app.user


def unwritable(cluster: Cluster, spec: StreamSpec) -> Iterator[str]:
    """Yield why the stream's next user could not go on in its checkpoints."""
    with open_session(cluster, identity_of(spec, cluster)) as session:
        for checkpoint in spec.checkpoints:
            try:
                session.hdfs.check_access(checkpoint, _ALL)
            except NotFound:
                continue
            except Denied as denied:
                yield f"{session.state.user} can't write {checkpoint}, from which it goes on: {denied.without_advice}"
