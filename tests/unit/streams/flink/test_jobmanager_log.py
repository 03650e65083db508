"""The words of a JobManager's log, as Flink 1.20 and 2.1 write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.policy.streams.ends.ends import end_of
from airflow_kstream.policy.streams.flink import jobmanager_log
from airflow_kstream.policy.streams.flink.jobmanager_log import Refusal, last_error, last_refusal, token_rounds
from tests.simulated.flink import UNMAPPED
from tests.simulated.regex_steps import steps_of, words_of

MANAGER = "org.apache.flink.runtime.security.token.DefaultDelegationTokenManager [] -"
ACTIVE = "org.apache.flink.runtime.resourcemanager.active.ActiveResourceManager [] -"
YARN = "org.apache.flink.yarn.YarnResourceManagerDriver              [] -"
WORKER = "container_1_0001_01_00000"
EXPIRED = (
    "[2026-01-02 00:00:20.001]Application application_1_0001 initialization failed: token (HDFS_DELEGATION_TOKEN "
    "token 7) is expired, current time: 2026-01-02 00:00:20, expected renewal time: 2026-01-02 00:00:14\n"
    "\tat org.apache.hadoop.ipc.Client.call(Client.java:1)\n"
)


def log(*lines: str) -> str:
    """A log with a line each second."""
    return "".join(f"2026-01-02 00:00:{second:02d},500 INFO  {line}\n" for second, line in enumerate(lines))


def asks() -> str:
    return f"{ACTIVE} Requesting new worker with resource spec WorkerResourceSpec {{cpuCores=1.0}}."


def gets() -> str:
    return f"{YARN} Received 1 containers."


def joins(number: int) -> str:
    return f"{ACTIVE} Worker {WORKER}{number}(node1:8041) is registered."


def ends(number: int, words: str) -> str:
    return f"{ACTIVE} Worker {WORKER}{number}(node1:8041) is terminated. Diagnostics: {words}"


def dated(issued: datetime) -> str:
    """What DFSClient says of a token that a round has just made."""
    millis = int(issued.timestamp() * 1000)
    return f"org.apache.hadoop.hdfs.DFSClient [] - Created token for orders: HDFS_TOKEN issueDate={millis}, m"


PATTERNS = {name: value for name, value in vars(jobmanager_log).items() if isinstance(value, re.Pattern)}


def at(second: float) -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=second)


def test_a_round_tells_when_the_next_one_is_due() -> None:
    (told,) = token_rounds(log(dated(at(0.2)), f"{MANAGER} Tokens update task started with 90 s delay"))
    assert (told.at, told.delay, told.tokens_end) == (at(1.5), timedelta(seconds=90), at(121.5))


@pytest.mark.parametrize("hours", [8, -5, 5.75])
def test_the_zone_of_its_host_shows_in_the_dates_of_tokens(hours: float) -> None:
    """The host's own clock may be wrong by minutes beside it."""
    issued = at(0.2) - timedelta(hours=hours) + timedelta(minutes=3)
    (told,) = token_rounds(log(dated(issued), f"{MANAGER} Tokens update task started with 90 s delay"))
    assert told.at == at(1.5) - timedelta(hours=hours)


def test_without_a_date_of_a_token_no_round_counts() -> None:
    assert token_rounds(log(f"{MANAGER} Tokens update task started with 90 s delay")) == ()


def test_a_round_that_failed_brings_nothing_and_is_tried_again() -> None:
    first, failed = token_rounds(
        log(
            dated(at(0)),
            f"{MANAGER} Tokens update task started with 18 h delay",
            f"{MANAGER} Failed to update tokens, will try again in 3600000 ms",
        )
    )
    assert (failed.delay, failed.tokens_end, failed.is_last) == (timedelta(hours=1), first.tokens_end, False)


def test_a_round_without_a_date_is_the_last() -> None:
    (last,) = token_rounds(
        log(
            dated(at(0)),
            f"{MANAGER} Tokens update task not started because either no tokens obtained or none of the tokens …",
        )
    )
    assert last.is_last


def test_other_lines_are_no_rounds() -> None:
    assert token_rounds(log(asks(), gets(), joins(2))) == ()


def test_yarns_words_on_the_last_container_that_never_joined_are_why_none_comes() -> None:
    refused = last_refusal(
        log(asks(), gets(), joins(2), ends(2, "killed"), asks(), gets(), ends(3, EXPIRED), asks(), gets(), asks())
    )
    assert not refused.waits
    assert "is expired" in refused.words
    assert "expected renewal time: 2026-01-02 00:00:14" in refused.words
    assert "Client.java" not in refused.words


def test_a_container_that_yarn_has_not_given_is_what_the_job_waits_for() -> None:
    waits = last_refusal(log(asks(), gets(), joins(2), ends(2, "Container released on a *lost* node"), asks()))
    assert waits == Refusal("Container released on a *lost* node", waits=True)


def test_a_worker_that_joined_ends_the_words_on_those_before() -> None:
    assert last_refusal(log(asks(), gets(), ends(2, EXPIRED), asks(), gets(), joins(3))) == Refusal()


def test_the_end_of_a_worker_that_was_replaced_is_past() -> None:
    assert last_refusal(log(asks(), gets(), joins(2), ends(2, "killed"), asks(), gets(), joins(3))) == Refusal()


def test_no_log_tells_nothing() -> None:
    assert last_refusal("") == Refusal()


FAILURE = (
    "2026-01-02 00:00:01,500 INFO  org.apache.flink.runtime.dispatcher.Dispatcher [] - Job 0abc reached terminal state "
    "FAILED.\norg.apache.flink.runtime.JobException: Recovery is suppressed by NoRestartBackoffTimeStrategy\n"
    "\tat org.apache.flink.runtime.Some.method(Some.java:1)\n"
    "Caused by: java.lang.IllegalStateException: no such topic: orders\n\t... 3 more\n"
)


def test_the_innermost_cause_of_the_jobs_end_is_its_error() -> None:
    logs = {"jobmanager.log": FAILURE + log(f"{ACTIVE} Stopping."), "jobmanager.err": ""}
    assert last_error(logs, "jobmanager.log") == "java.lang.IllegalStateException: no such topic: orders"


def test_without_a_log_the_last_exception_of_a_jvm_counts() -> None:
    words = 'Exception in thread "main" java.lang.NoClassDefFoundError: org/apache/hadoop/conf/Configuration\n'
    assert last_error({"jobmanager.err": words}, "jobmanager.log").startswith("java.lang.NoClassDefFoundError")
    assert last_error({}, "jobmanager.log") == ""


def test_an_error_that_the_job_survives_is_none_of_its_end() -> None:
    text = "2026-01-02 00:00:01,500 ERROR org.apache.flink.runtime.rest.handler.X [] - Unhandled exception.\n"
    text += "java.util.concurrent.CompletionException: the JobManager is initializing\n"
    text += "2026-01-02 00:00:02,500 INFO  ExecutionGraph [] - Job rows switched from state RUNNING to RESTARTING.\n"
    text += "java.io.IOException: a TaskManager is lost\n"
    assert last_error({"jobmanager.log": text}, "jobmanager.log") == ""


def test_a_jobmanager_that_could_not_start_says_why() -> None:
    text = "2026-01-02 00:00:01,500 ERROR ClusterEntrypoint [] - Could not start cluster entrypoint Yarn.\n"
    text += "org.apache.flink.X: a Exception\nCaused by: java.net.BindException: Address already in use\n"
    assert last_error({"jobmanager.log": text}, "jobmanager.log") == "java.net.BindException: Address already in use"


def test_a_warning_about_a_harmless_exception_is_no_error() -> None:
    text = "2026-01-02 00:00:01,500 WARN  org.apache.hadoop.X [] - retry\njava.net.ConnectException: refused\n"
    assert last_error({"jobmanager.log": text}, "jobmanager.log") == ""


def test_the_error_of_a_job_that_has_no_place_for_its_state_is_the_innermost_one() -> None:
    """The JobManager wraps it four times, and its address is as long as HDFS lets it be."""
    trace = (
        "org.apache.flink.client.deployment.application.ApplicationDispatcherBootstrap [] - Application failed "
        "unexpectedly: \njava.util.concurrent.CompletionException: org.apache.flink.client.deployment.application."
        "ApplicationExecutionException: Could not execute application.\n\tat java.base/x.y(Z.java:1)\nCaused by: "
        "org.apache.flink.runtime.client.JobInitializationException: Could not start the JobMaster.\n\tat a.b(C.java)\n"
        f"Caused by: java.util.concurrent.CompletionException: {UNMAPPED}\n\t... 3 more\nCaused by: {UNMAPPED}\n"
        "\tat org.apache.flink.runtime.checkpoint.Checkpoints.throwNonRestoredStateException(Checkpoints.java:233)\n"
    )
    error = last_error({"jobmanager.log": log(trace)}, "jobmanager.log")
    assert error.startswith("java.lang.IllegalStateException: Failed to rollback to checkpoint/savepoint")
    assert end_of("", error).kind is EndKind.STATE
    long = error.replace("hdfs://prod", f"hdfs://prod/{'x' * 120}")
    assert end_of("", long).kind is EndKind.STATE


@pytest.mark.parametrize("name", PATTERNS)
def test_a_log_of_twice_the_length_takes_at_most_some_twice_the_steps(name: str) -> None:
    """The job's own code writes it, too, and all streams of a cluster are watched by one thread."""
    pattern = PATTERNS[name]
    words = [*words_of(pattern.pattern), ""]
    for begun, repeated in product(("", words[0], "2026-01-01 00:00:01"), ("a", "a.", " ", "\n", *words[:1])):
        once, twice = (
            steps_of(pattern.pattern, f"{(begun + repeated * length)[:length]}#", pattern.flags) for length in (90, 180)
        )
        assert twice < 3 * once, f"{pattern.pattern} on {begun!r} and {repeated!r}"


@pytest.mark.parametrize("day", ["0000-00-00", "2026-02-30", "0001-01-01", "9999-12-31"])
def test_what_only_looks_like_a_time_begins_no_record(day: str) -> None:
    """A row that the job wrote to its log, as one of MySQL's with its zero date."""
    lines = log(
        dated(at(0.2)),
        f"a.B [] - rows:\n{day} 00:00:00 NEW order",
        f"{MANAGER} Tokens update task started with 90 s delay",
    )
    (told,) = token_rounds(lines)
    assert told.at == at(2.5)
    assert last_refusal(lines) == Refusal()


def test_a_date_of_a_token_that_no_calendar_has_tells_no_zone() -> None:
    created = (
        "org.apache.hadoop.hdfs.DFSClient [] - Created token for orders: HDFS_TOKEN issueDate=17672256020000000000, m"
    )
    assert token_rounds(log(created, f"{MANAGER} Tokens update task started with 90 s delay")) == ()
