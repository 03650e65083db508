"""A cluster's delegation tokens: for whom one is made, where it is made and cancelled, and how long it lives.

One that an application gets is for the user as whom YARN runs it, and for nobody else: the author of an application
chooses what its driver says of itself; as whom it runs, YARN has proven. Lifetimes are measured, and not assumed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_kstream.clients.hadoop_conf import rpc_conf
from airflow_kstream.clients.hdfs.tokens import cancel_by_identifier, mint
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kms import Kms, is_kms
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.kerberos.credentials_file import FreshToken
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import DelegationToken, TokenLifetimes
from airflow_kstream.model.streams.stream_policies import RestartPolicy

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


# Seconds: each measurement is a token that a NameNode makes, renews and cancels.
_MEASURED_EVERY, _AFTER_A_FAILURE = 3600.0, 300.0


def unproven(session: ClusterSession, app: Application, minter: Identity) -> str:
    """Return why no server tells whether YARN runs the application as the user for whom `minter` makes tokens; empty if
    it does.

    That is the user whom it impersonates, or its own by the ResourceManager's rules of auth_to_local; by HDFS's, where
    the ResourceManager tells no names.

    Raises Denied: when YARN runs it as somebody else.
    """
    if app.user and app.user == minter.do_as:
        return ""
    if not app.user:
        return f"the ResourceManager does not tell as whom it runs {app.id}"
    try:
        whose = _own_user(session) if minter == session.identity else minter.do_as
    except KstreamError as error:
        return f"YARN runs it as {app.user}, and whether that is {minter} no server tells: {error.without_advice}"
    if app.user == whose:
        return ""
    raise Denied(
        f"YARN runs it as {app.user}, and the token would be {whose}'s: the job could act as {whose} with it",
        tried=f"push tokens to {app.id}",
        principal=str(minter),
    )


def _own_user(session: ClusterSession) -> str:
    """Return the session's user. HDFS is not asked in the place of a ResourceManager that is away."""
    user = session.yarn.user()
    if user is None:
        session.yarn.active()
    return user or session.state.user


def mint_at(issuer: str, cluster: Cluster, identity: Identity) -> FreshToken:
    """Make a token as this identity. Raises InvalidInput: when the connection has no conf folder with RPC addresses."""
    if is_kms(issuer):
        return Kms(issuer, identity, cluster.tls).mint()
    return mint(rpc_conf(cluster), issuer, identity)


def cancel_at(issuer: str, cluster: Cluster, identity: Identity, identifier: bytes) -> None:
    """Cancel a token of which only the identifier was kept."""
    if is_kms(issuer):
        Kms(issuer, identity, cluster.tls).cancel(identifier)
    else:
        cancel_by_identifier(rpc_conf(cluster), issuer, identity, identifier)


def _monotonic() -> float:
    return time.monotonic()


def earliest_issue(app: Application, asks: Identity) -> datetime:
    """Return the earliest time at which an application of no stream can have got the tokens of its launch.

    Raises Denied: when the ResourceManager hides its start from this identity.
    """
    if app.started is None:
        raise Denied(
            "it belongs to no stream, and this principal may not see its start time",
            tried=f"inspect the tokens of {app.id}",
            principal=str(asks),
        )
    return app.started - RestartPolicy().adopt_margin


def learn_lifetimes(hdfs: Hdfs, identity: Identity) -> TokenLifetimes:
    """Get a token that this identity may renew itself, read and renew it, and cancel it again.

    Spark measures its renewal interval in the same way. No other source shows the real values to a user without
    administrator rights.
    """
    token = hdfs.new_token(renewer=identity.do_as or identity.principal)
    try:
        read = DelegationToken.from_url_string(token)
        renewed_until = hdfs.renew_token(token)
    finally:
        hdfs.cancel_token(token)
    return TokenLifetimes(renew_interval=renewed_until - read.issued, max_lifetime=read.max_date - read.issued)


@dataclass
class RecentLifetimes:
    """The lifetimes of this cluster's tokens, by a measurement that is at most an hour old. Not thread-safe.

    A cluster that can't be asked has the lifetimes that it had, and is asked again after five minutes.
    """

    session: ClusterSession
    clock: Callable[[], float] = _monotonic
    _known: TokenLifetimes | None = None
    _next: float = -math.inf

    def renew_interval(self) -> timedelta | None:
        """Return how long a token lives without a renewal; None if that was never known."""
        now = self.clock()
        if now >= self._next:
            try:
                self._known, wait = learn_lifetimes(self.session.hdfs, self.session.identity), _MEASURED_EVERY
            except KstreamError:
                wait = _AFTER_A_FAILURE
            self._next = now + wait
        return self._known.renew_interval if self._known else None
