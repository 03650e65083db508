"""The tokens that a client got for a job at its submission: which of their ends count, and what a push moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason, LaunchToken, launch_tokens
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from airflow_kstream.policy.streams.horizon.refresh import Refresh
from airflow_kstream.policy.streams.spark.spark_tokens import uncounted_tokens
from airflow_kstream.supervise.streams.folder.formats import read_tokens, written_tokens
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, WEEK, claim_of

DAY = timedelta(days=1)
# As a client printed it; the second token measures a renewal and is cancelled at once.
HDFS_LINES = """\
26/11/24 01:59:37 INFO DFSClient: Created token for root: HDFS_DELEGATION_TOKEN owner=streamer@KSTREAM.TEST, \
renewer=yarn, realUser=, issueDate=1795485577710, maxDate=1795486297710, sequenceNumber=1, masterKeyId=2 \
on ha-hdfs:kstream
26/11/24 01:59:37 INFO DFSClient: Created token for root: HDFS_DELEGATION_TOKEN owner=streamer@KSTREAM.TEST, \
renewer=root, realUser=, issueDate=1795485577723, maxDate=1795486297723, sequenceNumber=2, masterKeyId=2 \
on ha-hdfs:kstream
"""
KMS_LINE = (
    "26/11/24 01:59:38 INFO KMSClientProvider: New token created: (Kind: kms-dt, Service: kms://https@localhost:9600"
    "/kms, Ident: (kms-dt owner=streamer, renewer=yarn, realUser=, issueDate=1795485578000, maxDate=1796090378000, "
    "sequenceNumber=1, masterKeyId=2))\n"
)
HBASE_LINE = (
    "26/11/24 01:59:38 INFO HBaseDelegationTokenProvider: Get token from HBase: Kind: HBASE_AUTH_TOKEN, Service: "
    "3f2b, Ident: (username=streamer, keyId=7, issueDate=1795485578000, expirationDate=1796090378000, "
    "sequenceNumber=3)\n"
)
HIVE = LaunchToken("HIVE_DELEGATION_TOKEN", "", START, START + 7 * DAY, "hive")
NAMES_HIVE = {"spark.sql.catalogImplementation": "hive"}
THERE = {"spark.kerberos.access.hadoopFileSystems": "hdfs://there"}


def token(kind: str, life: timedelta, service: str = "there", renewer: str = "yarn") -> LaunchToken:
    # Its issuer's clock is two hours ahead: only the difference of both dates counts.
    return LaunchToken(kind, service, START + DAY / 12, START + DAY / 12 + life, renewer)


def claim(*tokens: LaunchToken) -> Claim:
    return changed(claim_of(TICKET_SPEC, 1, START), tokens=tokens)


def ends(*tokens: LaunchToken, refresh: Refresh | None = None) -> Horizon:
    return horizon(TICKET_SPEC.restart, Credentials(claim(*tokens), refresh=refresh), START + DAY)


def test_a_client_tells_the_tokens_that_it_got_and_not_those_that_it_measured_with() -> None:
    hdfs, kms, hbase = launch_tokens(HDFS_LINES + KMS_LINE + HBASE_LINE)
    assert str(hdfs) == "HDFS_DELEGATION_TOKEN of ha-hdfs:kstream"
    assert (hdfs.renewer, hdfs.ends) == ("yarn", datetime(2026, 11, 24, 2, 11, 37, 710000, tzinfo=UTC))
    assert str(kms) == "kms-dt of kms://https@localhost:9600/kms"
    assert kms.ends
    assert hbase.ends
    assert kms.ends - hbase.ends == timedelta()


def test_no_more_than_the_dates_of_tokens_is_kept() -> None:
    (kept,) = launch_tokens(HDFS_LINES)
    text = written_tokens((kept,), "nonce1")
    assert "streamer" not in text
    assert read_tokens(text, "nonce1") == (kept,)


def test_another_launchs_tokens_say_nothing_of_this_one() -> None:
    assert read_tokens(written_tokens((HIVE,), "nonce1"), "nonce2") == ()


@pytest.mark.parametrize("text", ["", "[]", '{"version": 99}', '{"version": 2, "nonce": "n", "tokens": [{"kind": 1}]}'])
def test_what_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_tokens(text, "n")


def test_a_token_that_ends_before_those_of_hdfs_is_the_horizon() -> None:
    hbase = token("HBASE_AUTH_TOKEN", 3 * DAY)
    foretold = ends(hbase)
    assert (foretold.reason, foretold.hard) == (HorizonReason.SERVICE_TOKEN, START + 3 * DAY)
    assert foretold.why.endswith("(HBASE_AUTH_TOKEN of there)")
    assert ends(token("HBASE_AUTH_TOKEN", 8 * DAY)) == ends()


def test_another_nameservice_may_have_shorter_tokens() -> None:
    foretold = ends(token("HDFS_DELEGATION_TOKEN", 2 * DAY, "ha-hdfs:there"))
    assert (foretold.reason, foretold.hard) == (HorizonReason.TOKEN_MAX_LIFETIME, START + 2 * DAY)
    assert "ha-hdfs:there" in foretold.why


@pytest.mark.parametrize(
    "unknown",
    [
        HIVE,
        LaunchToken("KAFKA_DELEGATION_TOKEN", "kafka"),
        token("HBASE_AUTH_TOKEN", -DAY),
        # Nobody renews it: it ends after a renew interval, which only the KMS knows.
        token("kms-dt", 7 * DAY, renewer=""),
    ],
)
def test_a_token_whose_end_is_not_known_moves_no_horizon(unknown: LaunchToken) -> None:
    assert ends(unknown) == ends()


def test_a_push_moves_the_end_of_hdfs_tokens_and_of_no_other() -> None:
    pushed = TokenPush(1, int(START.timestamp() * 1000), START + 2 * DAY)
    refresh = Refresh(pushed, answers=True, interval=DAY / 2)
    nameservice, hbase = token("HDFS_DELEGATION_TOKEN", DAY / 2, "ha-hdfs:there"), token("HBASE_AUTH_TOKEN", DAY)
    assert ends(nameservice, refresh=refresh).hard == pushed.until
    limited = ends(nameservice, hbase, refresh=refresh)
    assert (limited.reason, limited.hard, limited.push) == (HorizonReason.SERVICE_TOKEN, START + DAY, None)


def test_a_service_is_uncounted_until_its_tokens_end_is_known() -> None:
    spec = replace(TICKET_SPEC, credentials=TicketCredentials(), conf={**NAMES_HIVE, **THERE})

    def uncounted(*tokens: LaunchToken) -> list[str]:
        return [each.service for each in uncounted_tokens(spec, {}, "hdfs://here", tokens)]

    assert uncounted() == uncounted(HIVE) == ["the Hive metastore", "hdfs://there"]
    assert uncounted(token("HDFS_DELEGATION_TOKEN", WEEK.max_lifetime, "ha-hdfs:there")) == ["the Hive metastore"]
    assert uncounted(token("HDFS_DELEGATION_TOKEN", DAY, "there:8020")) == ["the Hive metastore"]


def test_a_token_that_no_conf_names_is_known_from_the_launch() -> None:
    assert uncounted_tokens(TICKET_SPEC, {}, "hdfs://here", (HIVE,))[0].service == "the Hive metastore"
