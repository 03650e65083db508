"""The max dates of delegation tokens: those of a file, of a stream's generation, of an application.

`watched_tokens` looks at all that a declaration names: of applications that are not streams, and of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from airflow_kstream.clients.hdfs.tokens import CredentialHdfs
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.declared import read, written
from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound, StreamEnded, Unavailable
from airflow_kstream.model.fields import ApplicationId, StreamName, TokenFile, Wait
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.model.kerberos.expiry import ExpiryCheck
from airflow_kstream.model.kerberos.tokens import DelegationToken, Token
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.events.attention import WatchedToken
from airflow_kstream.policy.streams.horizon.launch_tokens import issued_at
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.folder.tagged_applications import TaggedApplications
from airflow_kstream.supervise.streams.look.watched_claim import completed
from airflow_kstream.supervise.tokens.launch import launch_tokens

_SOURCES = ("file", "stream", "application")


@dataclass(frozen=True, kw_only=True)
class TokenExpiryCondition:
    """The tokens to watch, and how long before their max date they are reported.

    Exactly one of `file` (an absolute path of this host, or an hdfs:// URI), `stream` (a name) and `application`
    (an id of YARN) is set.

    Raises InvalidInput: when a field is wrong.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    file: TokenFile | None = None
    stream: StreamName | None = None
    application: ApplicationId | None = None
    within: Wait = timedelta(days=1)

    def __post_init__(self) -> None:
        sources = [name for name in _SOURCES if getattr(self, name)]
        if len(sources) != 1:
            raise InvalidInput(f"{' and '.join(sources) or 'nothing'} is given; give one of {', '.join(_SOURCES)}")

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> TokenExpiryCondition:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(TokenExpiryCondition, fields)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, which `from_mapping` takes."""
        return dict(written(self))

    @property
    def source(self) -> str:
        """Name the tokens' source in words."""
        name = next(name for name in _SOURCES if getattr(self, name))
        return f"{name} {getattr(self, name)}"


@dataclass(frozen=True)
class TokenEnd:
    """A token, or an application's launch tokens, and the time after which no renewal is possible."""

    name: str
    max_date: datetime

    def remaining(self, now: datetime) -> timedelta:
        return self.max_date - now

    def to_json(self, now: datetime) -> dict[str, Any]:
        seconds = round(self.remaining(now).total_seconds(), 3)
        return {"token": self.name, "max_date": self.max_date.isoformat(), "remaining_seconds": seconds}


# `now` is the NameNode's clock, or this host's for a local file.
TokenCheck = ExpiryCheck[TokenEnd]


class TokenWatch:
    """A repeatable check that reads unchanging facts once. Not thread-safe.

    A check changes nothing, except that for an application of no stream the first one gets a token and cancels it
    again, to learn how long the cluster lets tokens live.
    """

    def __init__(self, awaited: TokenExpiryCondition) -> None:
        self._awaited = awaited
        self._file: tuple[tuple[datetime, int], tuple[TokenEnd, ...]] | None = None
        self._launch: TokenEnd | None = None

    def check(self, session: ClusterSession) -> TokenCheck:
        """Check the tokens once.

        Raises NotFound: while there is nothing to check. Raises InvalidInput: when waiting can't help. Raises
        StreamEnded: when the application has ended.
        """
        for name, read_ends in _READERS.items():
            if source := getattr(self._awaited, name):
                now, ends = read_ends(self, session, source)
                return TokenCheck("tokens", self._awaited.source, self._awaited.within, now, ends)
        raise AssertionError(self._awaited)

    def _of_file(self, session: ClusterSession, path: str) -> tuple[datetime, tuple[TokenEnd, ...]]:
        if path.startswith("/"):
            return datetime.now(UTC), _ends(path, read_credentials(Path(path)).credentials)
        status = session.hdfs.status(path)
        state = status.modified, status.length
        if self._file is None or self._file[0] != state:
            cluster = session.cluster
            with closing(CredentialHdfs(cluster.namenodes, session.identity, cluster.tls)) as hdfs:
                self._file = state, _ends(path, hdfs.credentials(path))
        return session.hdfs.now(), self._file[1]

    def _of_stream(self, session: ClusterSession, name: str) -> tuple[datetime, tuple[TokenEnd, ...]]:
        stream = StreamId(name, session.cluster.state_dir)
        folder = StreamFolder(session, stream)
        authored = folder.authored()
        claim = folder.claim(frozenset(authored.counted))
        if claim is None:
            raise NotFound(f"no generation of {name} was ever claimed", tried=f"inspect the tokens of stream {name}")
        _refuse_its_own(claim, f"stream {name}")
        app = _require_running(session, TaggedApplications(stream, authored.counted), claim)
        claim = completed(session, claim, app)
        issued = issued_at(claim, _spec_of(claim, f"stream {name}").restart)
        if claim.credentials.lifetimes is None or issued is None:
            raise Unavailable(
                f"their age is unknown: neither the claim of generation {claim.generation} nor the cluster shows it",
                tried=f"inspect the tokens of stream {name}",
            )
        end = issued + claim.credentials.lifetimes.max_lifetime
        return session.hdfs.now(), (TokenEnd(f"launch tokens of generation {claim.generation} of {name}", end),)

    def _of_application(self, session: ClusterSession, application_id: str) -> tuple[datetime, tuple[TokenEnd, ...]]:
        if self._launch is None:
            launch = launch_tokens(session, application_id)
            if launch.claim:
                _refuse_its_own(launch.claim, application_id)
            self._launch = TokenEnd(f"launch tokens of {application_id}", launch.end)
        app = session.yarn.application(application_id)
        if not app.alive:
            tried = f"inspect the tokens of {application_id}"
            raise StreamEnded(f"it is {app.state.value}: its tokens are no longer in use", tried=tried)
        return session.hdfs.now(), (self._launch,)


_Reader = Callable[[TokenWatch, ClusterSession, str], tuple[datetime, tuple[TokenEnd, ...]]]
_READERS: Mapping[str, _Reader] = {
    "file": TokenWatch._of_file,
    "stream": TokenWatch._of_stream,
    "application": TokenWatch._of_application,
}


def _ends(path: str, credentials: HadoopCredentials) -> tuple[TokenEnd, ...]:
    ends = tuple(TokenEnd(_name(token), token.max_date) for token in credentials.tokens if token.max_date)
    if not ends:
        raise InvalidInput(f"no token in {path} has a max date; it holds {len(credentials.tokens)}")
    return ends


def _name(token: Token) -> str:
    whose = token.identifier
    of = f" {whose.sequence_number} of {whose.owner}" if isinstance(whose, DelegationToken) else ""
    return f"{token.kind}{of} for {token.service}"


def _refuse_its_own(claim: Claim, what: str) -> None:
    """Refuse a job that makes its own tokens in time: those of its launch tell nothing about its end."""
    if _spec_of(claim, what).credentials.renews_itself:
        raise InvalidInput(f"{what} gets new tokens with its keytab, so those of its launch do not limit it")


def _spec_of(claim: Claim, what: str) -> StreamSpec:
    if isinstance(claim.spec, UnknownSpec):
        raise InvalidInput(claim.doubt, tried=f"inspect the tokens of {what}")
    return claim.spec


def _require_running(session: ClusterSession, tagged: TaggedApplications, claim: Claim) -> Application:
    stream = tagged.stream
    applications = (
        (session.yarn.application(claim.adoption.application),)
        if claim.adoption.application
        else session.yarn.applications(stream.generation_tag(claim.generation))
    )
    ours = tagged.is_adopted if claim.adoption.application else tagged.is_ours
    if alive := [app for app in applications if app.alive and ours(session, claim.generation, app)]:
        return alive[-1]
    # Another application may follow; a ResourceManager that has just restarted may not know it yet.
    raise NotFound(
        f"no application of generation {claim.generation} is alive", tried=f"inspect the tokens of {stream.name}"
    )


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
