"""A push by a person's hand: as whom it is made, and whether it would shorten a job's life."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.formats.token import SecretBytes, written_vint
from airflow_kstream.model.fresh_token import FreshToken
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.tokens import DelegationToken
from airflow_kstream.supervise.tokens.push import _end_of, _minter, require_its_user
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of

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


def test_a_token_is_made_as_the_one_that_it_replaces_was() -> None:
    via = replace(LAUNCHED, owner="alice", real_user="streamer@EXAMPLE.COM")
    assert _minter(STREAMER, LAUNCHED, "application_1_1") == STREAMER
    assert _minter(STREAMER, via, "application_1_1") == replace(STREAMER, do_as="alice")


def test_nobody_makes_a_job_act_as_somebody_else() -> None:
    for other in (
        replace(LAUNCHED, owner="etl@EXAMPLE.COM"),
        replace(LAUNCHED, owner="alice", real_user="gateway@EXAMPLE.COM"),
    ):
        with pytest.raises(Denied, match=r"push as (etl|gateway)@EXAMPLE\.COM"):
            _minter(STREAMER, other, "application_1_1")


@pytest.mark.parametrize(
    ("yarns_name", "hdfs_name", "runs_as", "do_as", "whose"),
    [
        ("streamer", "streamer", "streamer", None, ""),
        ("streamer", "streamer", "mallory", None, "streamer"),
        # Both sides map the principal, and not to the same name: YARN's is the one that counts.
        ("yarn-streamer", "hdfs-streamer", "yarn-streamer", None, ""),
        ("yarn-streamer", "hdfs-streamer", "hdfs-streamer", None, "yarn-streamer"),
        # A ResourceManager without such a page, whose rules are most likely HDFS's.
        (None, "streamer", "streamer", None, ""),
        (None, "streamer", "mallory", None, "streamer"),
        ("streamer", "streamer", "alice", "alice", ""),
        ("streamer", "streamer", "streamer", "alice", "alice"),
        # The driver of anybody's job may name anybody whom we may impersonate.
        ("streamer", "streamer", "mallory", "hdfs", "hdfs"),
    ],
)
def test_a_token_is_made_only_for_whom_yarn_runs_the_job_as(
    yarns_name: str | None, hdfs_name: str, runs_as: str, do_as: str | None, whose: str
) -> None:
    clock = SimClock()
    yarn = SimYarn(clock, whoami=yarns_name)
    session, app = session_of(SimHdfs(clock, whoami=hdfs_name), yarn), yarn.start(frozenset(), user=runs_as)
    minter = replace(STREAMER, do_as=do_as)
    if not whose:
        require_its_user(session, app, minter)
        return
    with pytest.raises(Denied, match=f"YARN runs it as {runs_as}, and the token would be {whose}'s") as refused:
        require_its_user(session, app, minter)
    assert not refused.value.retryable
