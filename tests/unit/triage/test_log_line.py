"""The beginnings of records in the forms that the field's programs write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_kstream.model.logs.log_line import head_of

CHINA = timezone(timedelta(hours=8))
PLAIN = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)
MILLISECONDS = PLAIN.replace(microsecond=123_000)


@pytest.mark.parametrize(
    ("line", "when", "level"),
    [
        ("26/03/01 10:00:00 ERROR Sink: failed", PLAIN, "ERROR"),
        ("2026-03-01 10:00:00,123 WARN  org.apache.hadoop.ipc.Client: x", MILLISECONDS, "WARN"),
        ("2026-03-01 10:00:00.123 [main] INFO  o.a.Foo - started", MILLISECONDS, "INFO"),
        ("2026-03-01T10:00:00.123Z ERROR x", MILLISECONDS, "ERROR"),
        ("2026-03-01T18:00:00.123+0800 FATAL x", MILLISECONDS, "FATAL"),
        ("[2026-03-01 10:00:00,123] ERROR [Broker id=1] x (kafka.server.Kafka)", MILLISECONDS, "ERROR"),
        ("[2026-03-01T10:00:00.123+0000] {job.py:17} CRITICAL - x", MILLISECONDS, "CRITICAL"),
        ("[INFO ] 2026-03-01 10:00:00,123(437903235) --> [main] Foo.bar(Foo.java:1): x", MILLISECONDS, "INFO"),
        ("ERROR 2026-03-01 10:00:00,123 x", MILLISECONDS, "ERROR"),
        ('{"ts":"2026-03-01T10:00:00.123Z","level":"WARN","msg":"x"}', MILLISECONDS, "WARN"),
        ('{"timestamp":"2026-03-01T10:00:00.123Z","level":"info","event":"26/03/01 WARN x"}', MILLISECONDS, "INFO"),
        ('{"timestamp":"2026-03-01T10:00:00.123456Z", "event":"x"}', PLAIN.replace(microsecond=123456), ""),
        ("Mar  1 10:00:00 nm7 kernel: oom-kill", PLAIN, ""),
        ("01-Mar-2026 10:00:00.123 SEVERE [main] x", MILLISECONDS, "SEVERE"),
        ("01 Mar 2026 10:00:00,123 ERROR x", MILLISECONDS, "ERROR"),
        ("Mar 01, 2026 10:00:00 AM com.example.Job run", PLAIN, ""),
        ("Mar 01, 2026 12:30:00 AM com.example.Job run", PLAIN.replace(hour=0, minute=30), ""),
        ("三月 01, 2026 6:00:00 下午 com.example.Job run", PLAIN.replace(hour=18), ""),
        ("2026年3月1日 上午10:00:00 com.example.Job run", PLAIN, ""),
        ("1772359200123 ERROR x", MILLISECONDS, "ERROR"),
        ("0301 10:00:00.123456 ERROR  4711 job.cc:12] x", PLAIN.replace(microsecond=123456), "ERROR"),
        ("Sun Mar 01 10:00:00 CST 2026 WARN x", PLAIN, "WARN"),
        ("03-01 10:00:00 ERROR x", PLAIN, "ERROR"),
        ("20260301 10:00:00 ERROR x", PLAIN, "ERROR"),
        ("2026-03-01_10:00:00 ERROR x", PLAIN, "ERROR"),
        ("13/03/2026 10:00:00 ERROR x", PLAIN.replace(day=13), "ERROR"),
        ("03/13/2026 10:00:00 ERROR x", PLAIN.replace(day=13), "ERROR"),
        ("26-03-01 10:00:00 ERROR x", PLAIN, "ERROR"),
        ('<log4j:event logger="a" timestamp="1772359200123" level="ERROR" thread="main">', MILLISECONDS, "ERROR"),
        ("[2026-03-01, 10:00:00 UTC] {job.py:17} INFO - an error", PLAIN, "INFO"),
        ("2026-03-01T10:00:00.123Z [error    ] x", MILLISECONDS, "ERROR"),
        ('time="2026-03-01T10:00:00Z" level=warning msg=x', PLAIN, "WARNING"),
        ("2026-03-01 10:00:00,123 retries after an error", MILLISECONDS, ""),
        ("10:00:00.123 [main] ERROR a.b.C - no date", None, "ERROR"),
        ("2026-02-30 10:00:00,123 INFO a day that is none", None, "INFO"),
        ("9999-12-31 23:59:59,999 INFO a year that is none", None, "INFO"),
        ("2026-03-01 10:00:00 -9999 INFO a zone that is none", PLAIN, "INFO"),
    ],
)
def test_the_moment_and_the_level_of_a_record_are_read(line: str, when: datetime | None, level: str) -> None:
    head = head_of(line, year=2026)
    assert head is not None
    assert (head.when, head.level) == (when, level)


@pytest.mark.parametrize(
    ("line", "level"),
    [("ERROR a.B: x", "ERROR"), ("[main] WARN a.b.C - x", "WARN"), ("严重: x", "SEVERE"), ("[error] x", "ERROR")],
)
def test_without_a_moment_a_level_begins_a_record(line: str, level: str) -> None:
    head = head_of(line)
    assert head is not None
    assert (head.when, head.level) == (None, level)


@pytest.mark.parametrize("line", ["\tat a.b(C.java:1)", "Caused by: x", "", "java.io.IOException: 26/03/01 10:00:00"])
def test_a_line_within_a_record_begins_none(line: str) -> None:
    assert head_of(line) is None


def test_a_moment_without_a_zone_is_its_writers() -> None:
    head = head_of("26/03/01 18:00:00 INFO x", CHINA)
    assert head is not None
    assert head.when == PLAIN


def test_a_line_of_the_kernel_needs_a_year() -> None:
    head = head_of("Mar  1 10:00:00 nm7 kernel: oom-kill")
    assert head is not None
    assert head.when is None
