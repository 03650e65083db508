"""One look at all tokens that a declaration names: of applications that are not streams, and of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.events.attention import WatchedToken
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.tokens.expiry import TokenExpiryCondition, TokenWatch


@dataclass(frozen=True)
class WatchedTokens:
    """The tokens at one moment, by the NameNode's clock; `unread` are applications and files with the reasons."""

    now: datetime
    tokens: tuple[WatchedToken, ...]
    unread: Mapping[str, str]


def watched_tokens(session: ClusterSession, declared: TokenDeclaration) -> WatchedTokens:
    """Look at all of them. Streams are left out: their own tasks restart them in time.

    It changes nothing, except that it gets a token and cancels it again, to learn how long the cluster lets tokens
    live. Raises Unavailable: when a server is away. Raises Denied: when the applications can't be listed.
    """
    apps = _unsupervised(session, declared)
    tokens = [*_of_applications(session, [app for app in apps if app.started])]
    unread = {app.id: f"{session.identity} may not see when it started" for app in apps if not app.started}
    for file in declared.files:
        try:
            tokens += _of_file(session, file)
        except Unavailable:
            raise
        except KstreamError as error:
            unread[file] = error.without_advice
    return WatchedTokens(session.hdfs.now(), tuple(tokens), unread)


def _unsupervised(session: ClusterSession, declared: TokenDeclaration) -> list[Application]:
    """Return the declared applications that live and belong to no stream, by their ids."""
    found = {app.id: app for app in _declared(session, declared) if app.alive and ALL_STREAMS_TAG not in app.tags}
    if not found:
        return []
    claims = (registered.newest for registered in newest_claims(session))
    adopted = {claim.adoption.application for claim in claims if isinstance(claim, Claim)}
    return [app for _, app in sorted(found.items()) if app.id not in adopted]


def _declared(session: ClusterSession, declared: TokenDeclaration) -> Iterator[Application]:
    for user in declared.users:
        yield from session.yarn.running_as(user)
    for tag in declared.tags:
        # YARN keeps them in lower case.
        yield from session.yarn.applications(tag.lower())
    for application_id in declared.applications:
        # One that ended long ago is forgotten, and has no token left to lose.
        with suppress(NotFound):
            yield session.yarn.application(application_id)


def _of_applications(session: ClusterSession, apps: list[Application]) -> Iterator[WatchedToken]:
    if not apps:
        return
    longest = learn_lifetimes(session.hdfs, session.identity).max_lifetime
    margin = RestartPolicy().adopt_margin
    for app in apps:
        if app.started:
            yield WatchedToken(app.id, f"the launch tokens of this job of {app.user}", app.started - margin + longest)


def _of_file(session: ClusterSession, path: str) -> Iterator[WatchedToken]:
    for end in TokenWatch(TokenExpiryCondition(file=path)).check(session).things:
        yield WatchedToken(path, end.name, end.max_date, in_file=True)
