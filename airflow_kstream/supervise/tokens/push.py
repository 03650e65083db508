"""Fresh tokens for an application that somebody else submitted and that nothing prepares: by hand, over Spark's RPC.

It is the way out for a job whose tokens end tonight and that must not be restarted. One push is not enough:
the ResourceManager renews what was submitted and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.clients.client_process import added_variables
from airflow_kstream.clients.hadoop_conf import rpc_conf
from airflow_kstream.clients.hdfs.tokens import token_service
from airflow_kstream.clients.spark_installations import installation
from airflow_kstream.clients.spark_pages import SparkPages
from airflow_kstream.clients.spark_rpc import DriverRpc, driver_rpc
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.allow import Allow, covers
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, TooEarly, Unavailable
from airflow_kstream.model.kerberos.credentials_file import FreshToken, HadoopCredentials, credentials_file
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import KMS_TOKEN, DelegationToken, Token
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.policy.streams.restart.allowed import words
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import cancel_at, mint_at, unproven
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, newest_claims
from airflow_kstream.supervise.streams.restart.token_pushes import push_of, record_push

_PAGES_SECONDS = 20.0
# Spark 3 and later, and before; either may stand in a job's confs (ConfigBuilder's alternatives).
_KEYTABS = ("spark.kerberos.keytab", "spark.yarn.keytab")
_SECONDS = "%Y-%m-%d %H:%M:%S"
_EVERY, _WITHIN = timedelta(seconds=0.5), timedelta(seconds=30)


@dataclass(frozen=True)
class HandPush:
    """A push by hand: the driver's HDFS token before it and after it, and when each ends.

    `old_end` is the latest that it can be, `end` that of the first of the fresh tokens. `others` are the services of
    further ones. `stream` is the stream in whose folder it is recorded, empty if it belongs to none.
    """

    application: Application
    old: DelegationToken
    old_end: datetime
    new: DelegationToken
    end: datetime
    others: tuple[str, ...] = ()
    stream: str = ""

    @property
    def again_by(self) -> datetime:
        """Return by when it should be repeated: half of its life is for trouble."""
        return self.new.issued + (self.end - self.new.issued) / 2

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with no secret in it."""
        return {
            "application": self.application.id,
            "stream": self.stream or None,
            "others": list(self.others),
            "old": {"token": self.old.sequence_number, "until": self.old_end.isoformat()},
            "new": {"token": self.new.sequence_number, "until": self.end.isoformat()},
            "again_by": self.again_by.isoformat(),
        }


def is_over(error: KstreamError, end: datetime, now: datetime) -> bool:
    """Return whether no further push can follow this failure: YARN has forgotten the job, or its token has ended."""
    return isinstance(error, NotFound) or now >= end


def push_by_hand(session: ClusterSession, application_id: str, spark_submit: str, *, shorten: bool) -> HandPush:
    """Push fresh tokens of the connection's HDFS, and of the job's KMSs, to this application; return what it uses now.

    `spark_submit` is the path of a client of the job's own Spark version.

    They are made as `session`'s identity, or for the user whom it impersonates where the job's own was made so.

    Raises TooEarly: when it ends earlier than the present one, unless `shorten` is set. Raises Conflict: when the
    application does not run, or has a keytab. Raises Denied: when its tokens are another principal's, when YARN runs it
    as somebody else than they would be for, or when the driver demands authentication. Raises Unavailable: when no
    server tells whether YARN runs it as that user, when the driver does not answer, or when it does not use the token
    within half a minute.
    """
    app = session.yarn.application(application_id)
    if app.state is not ApplicationState.RUNNING:
        raise Conflict(f"it is {app.state}", tried=f"push tokens to {application_id}")
    conf, host, port = rpc_conf(session.cluster), *_driver(session, application_id)
    service = token_service(conf, session.cluster.default_fs)
    stream = _stream_of(session, app)
    with driver_rpc(installation(spark_submit, added_variables(session.cluster)), host, port) as driver:
        pushed, made = push_to_driver(session, app, driver, service, shorten=shorten)
    return replace(pushed, stream=_record(stream, made))


def push_to_driver(
    session: ClusterSession, app: Application, driver: DriverRpc, service: str, *, shorten: bool
) -> tuple[HandPush, tuple[FreshToken, ...]]:
    """Push to this driver, and return what it uses now and the tokens that were made. `service` is the name of the
    HDFS token to be replaced.

    The driver is the job's author's work: whatever it answers, nothing is made for anybody but YARN's user of the job.
    """
    held = _held(driver)
    old = _token(held, service)
    minter = minter_of(session, app, old)
    with _cancelled_in_vain(session.cluster, minter) as made:
        fresh = mint_at(session.cluster.default_fs, session.cluster, minter)
        made.append(fresh)
        old_end = _end_of(old, fresh)
        if fresh.until < old_end and not shorten:
            raise _shortens(app.id, fresh, old_end)
        for token in held:
            if token.kind == KMS_TOKEN:
                made.append(_of_kms(token, session.cluster, minter))
        driver.send(credentials_file(tuple(made)))
        _require_used(driver, service, fresh)
    end, others = min(token.until for token in made), tuple(token.service for token in made[1:])
    return HandPush(app, old, old_end, fresh.read, end, others), tuple(made)


@contextmanager
def _cancelled_in_vain(cluster: Cluster, minter: Identity) -> Iterator[list[FreshToken]]:
    """Cancel what was made if it does not come into use."""
    made: list[FreshToken] = []
    try:
        yield made
    except KstreamError:
        for token in made:
            with suppress(KstreamError):
                cancel_at(token.issuer, cluster, minter, token.identifier)
        raise


def _of_kms(old: Token, cluster: Cluster, minter: Identity) -> FreshToken:
    """Make a token under the name that the driver's own has (LoadBalancingKMSClientProvider)."""
    return replace(mint_at(old.service, cluster, minter), alias=old.alias)


def _driver(session: ClusterSession, application: str) -> tuple[str, int]:
    tried = f"find the driver of {application}"
    server, identity = session.yarn.active(), session.identity
    with closing(SparkPages(server, application, identity, session.cluster.tls, _PAGES_SECONDS)) as pages:
        try:
            properties = pages.properties()
        except NotFound as error:
            why = "it has no web UI of Spark's; jobs of other engines get tokens by `credentials.refresh` alone"
            raise Conflict(why, tried=tried) from error
    if keytab := next((name for name in _KEYTABS if properties.get(name)), ""):
        raise Conflict(f"it has a keytab ({keytab}) and makes its own tokens: there is nothing to push", tried=tried)
    if properties.get("spark.authenticate", "false").lower() == "true":
        raise Denied("it demands authentication (spark.authenticate), whose secret nobody outside knows", tried=tried)
    host, port = properties.get("spark.driver.host", ""), properties.get("spark.driver.port", "")
    if not host or not port.isdecimal():
        raise Unavailable("its web UI does not tell its address (spark.driver.host and .port)", tried=tried)
    return host, int(port)


def _held(driver: DriverRpc) -> tuple[Token, ...]:
    """Return the tokens that the driver hands to its executors."""
    content = driver.tokens()
    return HadoopCredentials.read(content).tokens if len(content) else ()


def _token(held: tuple[Token, ...], service: str) -> DelegationToken:
    found = [token.identifier for token in held if (token.alias, token.service) == (service, service)]
    if not found or not isinstance(found[0], DelegationToken):
        has = ", ".join(token.service for token in held) or "none"
        raise InvalidInput(f"the driver has no token for {service} that a fresh one would replace; it has {has}")
    return found[0]


def minter_of(session: ClusterSession, app: Application, old: DelegationToken) -> Identity:
    """Return who makes a token like this one of the application's.

    Raises Denied: when that is another principal, which would change who acts; when YARN runs the application as
    somebody else than the token would be for: the driver names the owner of its tokens, and the job's author wrote the
    driver; and when the connection does not allow that user. Raises Unavailable: when no server tells whether it does.
    """
    tried = f"push tokens to {app.id}"
    minter = _same_as(session.identity, old, app.id)
    if why := unproven(session, app, minter):
        raise Unavailable(f"no token was made: {why}", tried=tried, principal=str(minter))
    allow, user = session.cluster.allow, minter.do_as
    if allow is not None and user and not covers(allow.proxy_users, user):
        raise Denied(words(Allow(proxy_users=(user,)), session.cluster.name), tried=tried, principal=str(minter))
    return minter


def _same_as(identity: Identity, old: DelegationToken, application: str) -> Identity:
    if not old.real_user and old.owner == identity.principal:
        return replace(identity, do_as=None)
    if old.real_user == identity.principal:
        return replace(identity, do_as=old.owner)
    whose = f"{old.owner} by way of {old.real_user}" if old.real_user else old.owner
    raise Denied(
        f"its tokens are of {whose}; push as {old.real_user or old.owner}: --as and --keytab",
        tried=f"push tokens to {application}",
        principal=str(identity),
    )


def _end_of(old: DelegationToken, fresh: FreshToken) -> datetime:
    """Return the latest end of the present token: what we pushed ends unrenewed, what was submitted is renewed."""
    new = fresh.read
    pushed_before = old.renewer == new.renewer
    return min(old.issued + (fresh.until - new.issued), old.max_date) if pushed_before else old.max_date


def _shortens(application: str, fresh: FreshToken, old_end: datetime) -> TooEarly:
    later = old_end - (fresh.until - fresh.read.issued)
    return TooEarly(
        f"its present token is renewed until {old_end:{_SECONDS}} UTC at the latest, and a pushed one, which nobody "
        f"but you renews, ends at {fresh.until:{_SECONDS}} UTC; push after {later:{_SECONDS}} UTC, or say --shorten",
        tried=f"push tokens to {application}",
    )


def _require_used(driver: DriverRpc, service: str, fresh: FreshToken) -> None:
    wanted = fresh.read
    if until(lambda: _token(_held(driver), service) == wanted or None, _EVERY, _WITHIN) is None:
        raise Unavailable("its driver was sent a fresh token and does not use it", tried="confirm the push")


def _stream_of(session: ClusterSession, app: Application) -> tuple[RegisteredStream, Claim] | None:
    """Return the stream whose newest generation this application is, with that claim; None if it belongs to none."""
    claims = ((registered, _claim_of(session, registered, app)) for registered in newest_claims(session))
    return next(((registered, claim) for registered, claim in claims if claim), None)


def _record(stream: tuple[RegisteredStream, Claim] | None, made: tuple[FreshToken, ...]) -> str:
    """Record it for the stream whose generation this is, so that its horizon moves; return its name, or empty."""
    if stream is None:
        return ""
    registered, claim = stream
    record_push(registered.folder, push_of(claim.generation, made), made)
    return registered.stream.name


def _claim_of(session: ClusterSession, registered: RegisteredStream, app: Application) -> Claim | None:
    """Return the newest claim if the application is its generation. A tag proves nothing: anybody can set it."""
    newest = registered.newest
    if not isinstance(newest, Claim) or claim_file(newest.generation) not in registered.names:
        return None
    if newest.adoption.application == app.id:
        return newest if registered.tagged.is_adopted(session, newest.generation, app) else None
    if registered.stream.generation_of(app.tags) != newest.generation or not newest.submitted_by_us:
        return None
    return newest if registered.tagged.is_ours(session, newest.generation, app) else None
