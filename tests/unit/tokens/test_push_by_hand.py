"""A push by a person's hand: as whom it is made, and whether it would shorten a job's life."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.token import SecretBytes, written_vint
from airflow_kstream.model.kerberos.credentials_file import FreshToken
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import DelegationToken
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.tokens.push import _end_of, is_over, minter_of
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.silent import SilentHdfs, SilentYarn

NOW = datetime(2026, 1, 7, tzinfo=UTC)
DAY = timedelta(days=1)
STREAMER = Identity("streamer@EXAMPLE.COM", "/s.keytab")
LAUNCHED = DelegationToken("streamer@EXAMPLE.COM", "yarn", "", NOW - 6.5 * DAY, NOW + 0.5 * DAY, 7, 1)


def fresh() -> FreshToken:
    """Return a token as its NameNode writes it, renewed by us for a day."""
    names = (b"streamer@EXAMPLE.COM", b"streamer", b"")
    texts = b"".join(written_vint(len(name)) + name for name in names)
    moments = [int(moment.timestamp() * 1000) for moment in (NOW, NOW + 7 * DAY)]
    identifier = b"\0" + texts + b"".join(map(written_vint, moments)) + written_vint(9) + written_vint(2)
    return FreshToken("hdfs://prod", "ha-hdfs:prod", identifier, SecretBytes(b"p"), NOW + DAY)


def test_what_was_submitted_is_renewed_until_its_max_date() -> None:
    assert _end_of(LAUNCHED, fresh()) == LAUNCHED.max_date


def test_what_was_pushed_before_ends_a_renew_interval_after_its_issue() -> None:
    pushed = replace(LAUNCHED, renewer="streamer", issued=NOW - DAY / 2, max_date=NOW + 6.5 * DAY)
    assert _end_of(pushed, fresh()) == NOW + DAY / 2


def servers(yarns_name: str | None = "streamer", hdfs_name: str = "streamer") -> ClusterSession:
    """Return a session of `STREAMER`, whom ResourceManager and HDFS give these names."""
    clock = SimClock()
    return replace(session_of(SimHdfs(clock, whoami=hdfs_name), SimYarn(clock, whoami=yarns_name)), identity=STREAMER)


def made_by(old: DelegationToken, runs_as: str, *names: Any) -> Identity:
    """Return who would make the token that replaces the driver's, for a job that YARN runs as this user."""
    session = servers(*names)
    return minter_of(session, running(session, runs_as), old)


def running(session: ClusterSession, user: str) -> Application:
    yarn = cast(SimYarn, session.yarn)
    return replace(yarn.start(frozenset()), user=user)


def by_way_of_us(owner: str) -> DelegationToken:
    return replace(LAUNCHED, owner=owner, real_user=STREAMER.principal)


def test_a_token_is_made_as_the_one_that_it_replaces_was() -> None:
    assert made_by(LAUNCHED, "streamer") == STREAMER
    assert made_by(by_way_of_us("alice"), "alice") == replace(STREAMER, do_as="alice")


@pytest.mark.parametrize(
    ("allow", "may"),
    [(None, True), (Allow(proxy_users=("al*",)), True), (Allow(), False), (Allow(proxy_users=("bob",)), False)],
)
def test_only_a_user_whom_the_connection_allows_is_impersonated(allow: Allow | None, may: bool) -> None:
    bounded = replace(servers(), cluster=replace(servers().cluster, allow=allow))
    assert minter_of(bounded, running(bounded, "streamer"), LAUNCHED) == STREAMER
    with nullcontext() if may else pytest.raises(Denied, match=r'does not allow proxy_users: alice.*\["alice"\]'):
        minter_of(bounded, running(bounded, "alice"), by_way_of_us("alice"))


@pytest.mark.parametrize(("owner", "real_user"), [("etl@EXAMPLE.COM", ""), ("alice", "gateway@EXAMPLE.COM")])
def test_nobody_makes_a_job_act_as_somebody_else(owner: str, real_user: str) -> None:
    with pytest.raises(Denied, match=r"push as (etl|gateway)@EXAMPLE\.COM"):
        made_by(replace(LAUNCHED, owner=owner, real_user=real_user), "streamer")


@pytest.mark.parametrize(
    ("names", "runs_as"),
    [
        # Both sides map the principal, and not to the same name: YARN's is the one that counts.
        (("yarn-streamer", "hdfs-streamer"), "yarn-streamer"),
        # A ResourceManager without such a page, whose rules are most likely HDFS's.
        ((None, "streamer"), "streamer"),
    ],
)
def test_a_token_of_our_own_goes_to_a_job_that_yarn_runs_as_us(names: tuple[str | None, str], runs_as: str) -> None:
    assert made_by(LAUNCHED, runs_as, *names) == STREAMER


@pytest.mark.parametrize(
    ("told", "names", "runs_as", "whose"),
    [
        (LAUNCHED, ("streamer", "streamer"), "mallory", "streamer"),
        (LAUNCHED, ("yarn-streamer", "hdfs-streamer"), "hdfs-streamer", "yarn-streamer"),
        (LAUNCHED, (None, "streamer"), "mallory", "streamer"),
        (by_way_of_us("alice"), ("streamer", "streamer"), "streamer", "alice"),
        # The driver of anybody's job may name anybody whom we may impersonate.
        (by_way_of_us("hdfs"), ("streamer", "streamer"), "mallory", "hdfs"),
    ],
)
def test_no_token_is_made_for_anybody_but_whom_yarn_runs_the_job_as(
    told: DelegationToken, names: tuple[str | None, str], runs_as: str, whose: str
) -> None:
    with pytest.raises(Denied, match=f"YARN runs it as {runs_as}, and the token would be {whose}'s") as refused:
        made_by(told, runs_as, *names)
    assert not refused.value.retryable


@pytest.mark.parametrize("silent", ["ResourceManager", "HDFS"])
def test_while_no_server_tells_whose_an_application_is_nothing_is_made_for_it(silent: str) -> None:
    """Of a ResourceManager that is away HDFS says nothing: its rules may give the name to somebody else."""
    session = servers(yarns_name=None)
    app = running(session, "streamer")
    quiet = SilentYarn(SimClock()) if silent == "ResourceManager" else session.yarn
    hdfs = SilentHdfs(SimClock()) if silent == "HDFS" else session.hdfs
    session = replace(session, yarn=cast(ResourceManager, quiet), hdfs=cast(Hdfs, hdfs))
    with pytest.raises(
        Unavailable, match=r"no token was made: YARN runs it as streamer, and whether that is"
    ) as refused:
        minter_of(session, app, LAUNCHED)
    assert refused.value.retryable


def test_an_application_whose_user_is_not_told_gets_no_token() -> None:
    with pytest.raises(Unavailable, match="does not tell as whom it runs application_1_0001"):
        made_by(LAUNCHED, "")


@pytest.mark.parametrize(
    ("error", "now", "over"),
    [
        (Unavailable("the driver is away"), NOW, False),
        (Denied("impersonation is refused"), NOW, False),
        (Unavailable("the driver is away"), NOW + DAY, True),
        (NotFound("YARN has forgotten it"), NOW, True),
    ],
)
def test_pushes_go_on_after_a_failure_while_the_token_lives_and_yarn_knows_the_job(
    error: KstreamError, now: datetime, over: bool
) -> None:
    assert is_over(error, NOW + DAY, now) == over
