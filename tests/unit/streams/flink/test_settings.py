"""What a Flink job's settings say: how old its newest checkpoint may be, and of which services it has tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.streams.flink_conf import LONGEST, flink_duration, token_filesystems
from airflow_kstream.model.streams.flink_job import FlinkCheckpointing, FlinkCheckpoints
from airflow_kstream.model.streams.horizon import LaunchToken
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.policy.streams.flink.checkpoint_pace import (
    checkpoint_limit,
    checkpoint_trouble,
    declared_pace,
    settings_of,
)
from airflow_kstream.policy.streams.flink.flink_tokens import renewal_ratio, uncounted_tokens
from tests.simulated.yarn import TICKET_SPEC

MINUTE = timedelta(minutes=1)
PROVIDER = "security.delegation.token.provider."


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("30s", timedelta(seconds=30)),
        ("10 min", 10 * MINUTE),
        ("1500", timedelta(seconds=1.5)),
        ("1 d", timedelta(days=1)),
        ("500 ns", timedelta()),
        ("0000000000000000000000030s", timedelta(seconds=30)),
        ("9223372036854775807 ms", LONGEST),
        ("100000000 d", LONGEST),
        ("9" * 5000, LONGEST),
        ("soon", None),
        ("", None),
    ],
)
def test_durations_are_flinks(text: str, means: timedelta | None) -> None:
    assert flink_duration(text) == means


def test_a_checkpoint_that_may_take_for_ever_leaves_dates_that_exist() -> None:
    """As of a job that sets its timeout to Long.MAX_VALUE: the wait for its silence has a date."""
    pace = declared_pace({f"execution.checkpointing.{key}": str(2**63 - 1) for key in ("interval", "timeout")})
    limit = checkpoint_limit(replace(pace, tolerable=1000))
    assert datetime(2026, 1, 1, tzinfo=UTC) + 2 * limit < datetime.max.replace(tzinfo=UTC)
    assert declared_pace(settings_of(pace)) == pace


@pytest.mark.parametrize(
    ("conf", "limit"),
    [
        ({}, 20 * MINUTE),
        ({"interval": "30s"}, 20 * MINUTE),
        ({"interval": "1h"}, 120 * MINUTE),
        ({"interval": "1min", "timeout": "2min"}, 4 * MINUTE),
        ({"interval": "1min", "timeout": "2min", "tolerable-failed-checkpoints": "1"}, 6 * MINUTE),
        ({"interval": "1min", "timeout": "2min", "tolerable-failed-checkpoints": "100000"}, 10 * MINUTE),
        ({"interval": "1min", "timeout": "2min", "min-pause": "5min"}, 10 * MINUTE),
    ],
)
def test_the_newest_checkpoint_may_be_as_old_as_the_settings_promise(conf: dict[str, str], limit: timedelta) -> None:
    assert checkpoint_limit(declared_pace({f"execution.checkpointing.{key}": at for key, at in conf.items()})) == limit


def test_the_jobs_own_settings_win_over_what_is_declared() -> None:
    own = FlinkCheckpointing(MINUTE, 60 * MINUTE, timedelta(), 0, survives=True)
    assert checkpoint_limit(own) == 120 * MINUTE


SEEN = FlinkCheckpoints(5, 13, 0, 1, None, None, None, "Checkpoint expired before completing.")


def test_the_jobmanager_says_why_no_checkpoint_comes() -> None:
    assert checkpoint_trouble(SEEN) == "", "old failures are none of the next one's"
    failed = replace(SEEN, failed_since=4)
    assert checkpoint_trouble(failed) == "4 failed in a row, the last one: Checkpoint expired before completing"
    begun = replace(SEEN, begun=datetime(2026, 1, 1, 12, 30, tzinfo=UTC))
    assert checkpoint_trouble(begun) == "one is in progress since 12:30:00 UTC"


def test_the_ratio_of_renewal_is_the_settings_if_it_makes_sense() -> None:
    assert renewal_ratio({"security.delegation.tokens.renewal.time-ratio": "0.5"}) == 0.5
    for wrong in ("2", "x", "nan"):
        assert renewal_ratio({"security.delegation.tokens.renewal.time-ratio": wrong}) == 0.75


OTHER = {"security.kerberos.access.hadoopFileSystems": "hdfs://there;hdfs://far/"}


def test_each_filesystem_that_is_named_has_a_token() -> None:
    assert token_filesystems(OTHER, "hdfs://here/") == ("hdfs://here", "hdfs://there", "hdfs://far")


@pytest.mark.parametrize(
    ("conf", "services"),
    [
        ({}, []),
        ({f"{PROVIDER}hbase.enabled": "true"}, ["HBase"]),
        ({f"{PROVIDER}hbase.enabled": "false"}, []),
        ({"security.kerberos.token.provider.HiveServer2.uri": "x"}, ["the Hive metastore"]),
        ({f"{PROVIDER}s3-hadoop.region": "x", f"{PROVIDER}s3-presto.region": "x"}, ["S3"]),
        (OTHER, ["hdfs://there", "hdfs://far"]),
    ],
)
def test_services_whose_tokens_nobody_counts_are_named(conf: dict[str, str], services: list[str]) -> None:
    assert [each.service for each in uncounted_tokens(TICKET_SPEC, conf, "hdfs://here")] == services
    keytab = replace(TICKET_SPEC, credentials=KeytabCredentials("streamer@EXAMPLE.COM", "/etc/streamer.keytab"))
    assert uncounted_tokens(keytab, conf, "hdfs://here") == ()


def test_what_the_client_told_of_a_token_counts() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    told = (LaunchToken("HBASE_AUTH_TOKEN", "hbase", now, now + timedelta(days=7)),)
    assert uncounted_tokens(TICKET_SPEC, {f"{PROVIDER}hbase.enabled": "true"}, "hdfs://here", told) == ()


@pytest.mark.parametrize("interval", [timedelta(seconds=30), None])
def test_a_pace_that_was_told_once_is_read_again_from_its_settings(interval: timedelta | None) -> None:
    pace = FlinkCheckpointing(interval, 45 * MINUTE, timedelta(milliseconds=500), 7, survives=True)
    assert declared_pace(settings_of(pace)) == pace
