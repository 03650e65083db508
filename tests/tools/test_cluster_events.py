"""The table's rows for lines that Hadoop 3.4.3 really wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from airflow_kstream.demo.jobs.cluster_events import FIELDS, arguments, events, kafka_options, lines_of

MANAGER = "INFO org.apache.hadoop.security.token.delegation.AbstractDelegationTokenSecretManager:"
RM = "INFO org.apache.hadoop.yarn.server.resourcemanager"
RENEWER = f"{RM}.security.DelegationTokenRenewer:"
TOKEN = (
    "(token for root: HDFS_DELEGATION_TOKEN owner=streamer@KSTREAM.TEST, renewer=yarn, realUser=, "
    "issueDate=1795240457010, maxDate=1795240637010, sequenceNumber=2, masterKeyId=2)"
)
NAMED = f"Kind: HDFS_DELEGATION_TOKEN, Service: ha-hdfs:kstream, Ident: {TOKEN}"
HELD = f"{NAMED};exp=1795240548931; apps=[application_1795240381657_0001]"
OLD = f"{NAMED};exp=1795240548931; apps=[]"
AUDIT = (
    "2026-11-21 05:54:17,057 INFO FSNamesystem.audit: allowed=true\t"
    "ugi=streamer@KSTREAM.TEST (auth:KERBEROS)\tip=/127.0.0.1\t"
    "cmd={}\tsrc=HDFS_DELEGATION_TOKEN token 3 for root with renewer root\tdst=null\tperm=null\tproto=rpc"
)
OF_TOKEN = {
    "token_kind": "HDFS_DELEGATION_TOKEN",
    "owner": "streamer@KSTREAM.TEST",
    "renewer": "yarn",
    "sequence_number": 2,
    "issue_time": datetime(2026, 11, 21, 5, 54, 17, 10_000, UTC),
    "max_time": datetime(2026, 11, 21, 5, 57, 17, 10_000, UTC),
}
OF_AUDIT = {"token_kind": "HDFS_DELEGATION_TOKEN", "owner": "root", "renewer": "root", "sequence_number": 3}
APPLICATION = "application_1795240381657_0001"

# Line, kind, and every field that is not null.
LINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "issued": (
        f"2026-11-21 05:54:17,010 {MANAGER} Creating password for identifier: {TOKEN}, currentKey: 2",
        "TOKEN_ISSUED",
        OF_TOKEN,
    ),
    "renewal asked": (
        f"2026-11-21 05:54:17,054 {MANAGER} Token renewal for identifier: {TOKEN}; total currentTokens 3",
        "TOKEN_RENEWAL_ASKED",
        OF_TOKEN,
    ),
    "cancel asked": (
        f"2026-11-21 05:54:17,092 {MANAGER} Token cancellation requested for identifier: {TOKEN}",
        "TOKEN_CANCEL_ASKED",
        OF_TOKEN,
    ),
    "expired": (f"2026-11-21 05:59:06,891 {MANAGER} Removing expired token {TOKEN}", "TOKEN_EXPIRED", OF_TOKEN),
    "refused, unknown": (
        f"2026-11-21 05:59:07,172 {MANAGER} Token for real user: , can't be found in cache, Token={TOKEN}",
        "TOKEN_REFUSED",
        OF_TOKEN,
    ),
    "refused, too old": (
        f"2026-11-21 06:04:32,043 {MANAGER} Token  has expired, current time: 2026-11-21 06:04:32,043+0000 "
        f"expected renewal time: 2026-11-21 06:03:30,801+0000, Token={TOKEN}",
        "TOKEN_REFUSED",
        OF_TOKEN,
    ),
    "issued, audited": (AUDIT.format("getDelegationToken"), "TOKEN_ISSUED", OF_AUDIT),
    "renewed, audited": (AUDIT.format("renewDelegationToken"), "TOKEN_RENEWED", OF_AUDIT),
    "cancelled, audited": (AUDIT.format("cancelDelegationToken"), "TOKEN_CANCELLED", OF_AUDIT),
    "refused to renew, audited": (
        AUDIT.format("renewDelegationToken").replace("allowed=true", "allowed=false"),
        "OTHER",
        {},
    ),
    "submitted": (
        f"2026-11-21 05:54:18,586 {RENEWER} {APPLICATION} found existing hdfs token {NAMED}",
        "TOKEN_SUBMITTED",
        OF_TOKEN | {"application": APPLICATION},
    ),
    "renewed": (
        f"2026-11-21 05:54:18,938 {RENEWER} Renewed delegation-token= [{HELD}]",
        "TOKEN_RENEWED",
        OF_TOKEN | {"application": APPLICATION, "expiry_time": datetime(2026, 11, 21, 5, 55, 48, 931_000, UTC)},
    ),
    "renewal given up": (
        f"2026-11-21 05:57:17,015 {RENEWER} Exception renewing token{NAMED}. Not rescheduled".replace("INFO", "ERROR"),
        "TOKEN_RENEWAL_FAILED",
        OF_TOKEN,
    ),
    "replaced": (
        f"2026-11-21 06:22:02,783 {RENEWER} Token= ({OLD}) is expiring, request new token.",
        "TOKEN_REPLACED",
        OF_TOKEN | {"expiry_time": datetime(2026, 11, 21, 5, 55, 48, 931_000, UTC)},
    ),
    "its replacement": (
        f"2026-11-21 06:22:02,864 {RENEWER} Received new token Kind: HDFS_DELEGATION_TOKEN, Service: ha-hdfs:kstream, "
        "Ident: (token for root: HDFS_DELEGATION_TOKEN owner=root, renewer=yarn, realUser=rm/localhost@KSTREAM.TEST, "
        "issueDate=1795242122830, maxDate=1795242302830, sequenceNumber=3, masterKeyId=2)",
        "TOKEN_ISSUED",
        {
            "token_kind": "HDFS_DELEGATION_TOKEN",
            "owner": "root",
            "renewer": "yarn",
            "real_user": "rm/localhost@KSTREAM.TEST",
            "sequence_number": 3,
            "issue_time": datetime(2026, 11, 21, 6, 22, 2, 830_000, UTC),
            "max_time": datetime(2026, 11, 21, 6, 25, 2, 830_000, UTC),
        },
    ),
    "application": (
        f"2026-11-21 05:59:10,372 {RM}.rmapp.RMAppImpl: {APPLICATION} State change from RUNNING to FINAL_SAVING "
        "on event = ATTEMPT_UNREGISTERED",
        "APPLICATION_STATE",
        {
            "application": APPLICATION,
            "from_state": "RUNNING",
            "to_state": "FINAL_SAVING",
            "event": "ATTEMPT_UNREGISTERED",
        },
    ),
    "attempt": (
        f"2026-11-21 05:54:19,077 {RM}.rmapp.attempt.RMAppAttemptImpl: "
        "appattempt_1795240381657_0001_000001 State change from NEW to SUBMITTED on event = START",
        "OTHER",
        {},
    ),
    "an application's name that imitates a token": (
        "2026-11-21 05:54:18,586 INFO x.RMAppManager: Storing application named Removing expired token of mine",
        "OTHER",
        {},
    ),
    "nothing of ours": ("2026-11-21 05:53:04,694 INFO x.RMStateStore: Updating AMRMToken", "OTHER", {}),
}


def said(spark: SparkSession, *lines: str, zone: str = "UTC") -> list[Row]:
    frame = spark.createDataFrame([(number, line) for number, line in enumerate(lines)], "number int, line string")
    moments = [name for name, kind in FIELDS.items() if kind == "timestamp"]
    table = events(frame, zone)
    # Rows show a timestamp in the zone of the test's own process; seconds have none.
    seconds = {name: F.unix_micros(name) for name in ["time", *moments]}
    return table.withColumns(seconds).orderBy("number").collect()


def micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, Row]:
    return dict(zip(LINES, said(spark, *(line for line, _, _ in LINES.values())), strict=True))


@pytest.mark.parametrize("what", LINES)
def test_a_line_has_the_kind_that_it_proves(rows: dict[str, Row], what: str) -> None:
    line, kind, fields = LINES[what]
    row = rows[what]
    expected = {name: micros(value) if isinstance(value, datetime) else value for name, value in fields.items()}
    assert (row["line"], row["kind"]) == (line, kind)
    assert {name: row[name] for name in FIELDS if row[name] is not None} == expected


def test_every_line_has_its_time(rows: dict[str, Row]) -> None:
    expected = {
        what: micros(datetime.fromisoformat(line[:23]).replace(tzinfo=UTC)) for what, (line, _, _) in LINES.items()
    }
    assert {what: row["time"] for what, row in rows.items()} == expected


def test_a_daemons_local_time_is_understood(spark: SparkSession) -> None:
    winter, summer = said(spark, "2026-01-21 06:00:00,000 x", "2026-07-21 06:00:00,000 x", zone="Europe/Berlin")
    assert winter["time"] == micros(datetime(2026, 1, 21, 5, tzinfo=UTC))
    assert summer["time"] == micros(datetime(2026, 7, 21, 4, tzinfo=UTC))


def test_a_line_without_a_time_is_a_row_like_any_other(spark: SparkSession) -> None:
    lines = ["\tat java.base/java.lang.Thread.run(Thread.java:840)", "", "2026-13-41 99:99:99,999 no such time"]
    rows = said(spark, *lines)
    assert [(row["line"], row["kind"], row["time"]) for row in rows] == [(line, "OTHER", None) for line in lines]


def test_a_record_becomes_a_line_with_its_origin(spark: SparkSession) -> None:
    """The length counts bytes, including bytes that are not UTF-8."""
    records = spark.createDataFrame(
        [(bytearray(b"nn1:1234567890123"), bytearray(b"caf\xe9"), "events", 2, 77)],
        "key binary, value binary, topic string, partition int, offset long",
    )
    row = lines_of(records).first()
    assert row is not None
    assert row.asDict() == {
        "file": "nn1",
        "byte_offset": 1_234_567_890_123,
        "length": 4,
        "topic": "events",
        "partition": 2,
        "offset": 77,
        "line": "caf\ufffd",
    }


def test_kafka_is_read_with_a_keytab() -> None:
    words = "--bootstrap-servers b:1 --topic t --table x --checkpoint y --kafka-principal p@R --kafka-keytab ./k"
    options = kafka_options(arguments().parse_args(words.split()))
    assert 'keyTab="./k" principal="p@R"' in options["kafka.sasl.jaas.config"]
