"""The identity that a person's command on a stream uses: the stream's own or, if it can't log in, the connection's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, Denied
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.orders.desired import KnownSpec, known_spec

SpecOf = Callable[[ClusterSession, StreamId], KnownSpec]


@contextmanager
def open_as_stream(cluster: Cluster, spec: StreamSpec, tell: Callable[[str], None]) -> Iterator[ClusterSession]:
    """Open the servers as the stream's own identity, which can do all that its commands need.

    If that identity can't log in, fall back to the connection's own principal: as a supervisor it can hold a stream,
    and with the right to administer the stream's queue it can stop it.

    Raises CredentialError: when that principal lacks a right, too; the error names the keytab to repair.
    """
    identity = identity_of(spec, cluster)
    refusal = None if identity == cluster.watcher else _login_error(identity)
    if refusal is None:
        with open_session(cluster, identity) as session:
            yield session
        return
    tell(f"{refusal.without_advice}; going on as {cluster.watcher}")
    with open_session(cluster, cluster.watcher) as session:
        try:
            yield session
        except Denied as denied:
            raise CredentialError(
                f"{refusal.message}; and {cluster.watcher} may not: {denied.message}",
                tried=refusal.tried,
                principal=refusal.principal,
            ) from denied


@contextmanager
def open_by_name(
    cluster: Cluster, name: str, tell: Callable[[str], None], spec_of: SpecOf = known_spec
) -> Iterator[tuple[ClusterSession, KnownSpec]]:
    """Open a stream that is only known by its name: the spec that its newest claim names, and the servers as
    `open_as_stream`; as the connection's principal, if no supervisor kept that spec: no claim chooses whom we act as.

    Raises as `open_as_stream` and `spec_of`.
    """
    with open_session(cluster, cluster.watcher) as session:
        known = spec_of(session, StreamId(name, cluster.state_dir))
    if not known.submittable:
        with open_session(cluster, cluster.watcher) as session:
            yield session, known
        return
    with open_as_stream(cluster, known.spec, tell) as session:
        yield session, known


def _login_error(identity: Identity) -> CredentialError | None:
    """Return why it gets no ticket; an unreachable KDC is not a reason to act as somebody else."""
    try:
        with private_folder() as private:
            tickets.log_in(identity, private / "tickets")
    except CredentialError as error:
        return error
    return None
