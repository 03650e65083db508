"""Logs as Spark, Flink and Hadoop's daemons write them, made of a few words; and their diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.model.logs.signature import Catalogue
from airflow_kstream.policy.triage.sources import ScannedLog
from airflow_kstream.policy.triage.verdict import diagnose
from airflow_kstream.supervise.triage.scan import own_catalogue, scanner_of

# As NodeManagers write them to HDFS.
AGGREGATED = Path(__file__).with_name("aggregated")

DRIVER = "container_1700000000001_0042_01_000001/stderr"
EXECUTOR = "container_1700000000001_0042_01_000002/stderr"
OTHER_EXECUTOR = "container_1700000000001_0042_01_000003/stderr"
NODEMANAGER = "hadoop-yarn-nodemanager-nm7.log"
RESOURCEMANAGER = "hadoop-yarn-resourcemanager-rm1.log"

_FRAMES = "\n\tat org.example.Some.method(Some.java:17)\n\tat java.lang.Thread.run(Thread.java:840)"


def line(clock: str, words: str, level: str = "INFO", writer: str = "ApplicationMaster") -> str:
    """A record as Spark's log4j2 writes it; a traceback or a cause may follow in `words`."""
    return f"26/03/01 {clock} {level} {writer}: {words}\n"


def failing(clock: str, words: str, *causes: str, writer: str = "ApplicationMaster") -> str:
    """An error with its stack trace, and the exceptions that caused it."""
    below = "".join(f"\nCaused by: {cause}{_FRAMES}" for cause in causes)
    return line(clock, f"{words}{_FRAMES}{below}", "ERROR", writer)


def driver(*records: str) -> str:
    return line("09:00:00", "ApplicationAttemptId: appattempt_1700000000001_0042_000001") + "".join(records)


def executor(*records: str) -> str:
    return line(
        "09:00:05", "Started daemon with process name: 17@nm7", writer="CoarseGrainedExecutorBackend"
    ) + "".join(records)


def working(*clocks: str) -> str:
    """Lines of a job that works."""
    return "".join(
        line(clock, "Streaming query made progress: 17 rows", writer="MicroBatchExecution") for clock in clocks
    )


def died(clock: str) -> str:
    """The end of a driver that failed."""
    return line(clock, "Final app status: FAILED, exitCode: 16")


def stopped(clock: str) -> str:
    """The end of an executor whose driver went away."""
    return line(clock, "RECEIVED SIGNAL TERM", "ERROR", "CoarseGrainedExecutorBackend")


def diagnosed(logs: Mapping[str, str], known: Catalogue | None = None) -> Diagnosis:
    known = known or own_catalogue()
    scanner = scanner_of(known)
    return diagnose([ScannedLog(name, scanner.scan([text.encode()])) for name, text in logs.items()], known)
