"""Stories of failures in several logs: which line was the cause, and which only its consequence."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from airflow_kstream.model.logs.diagnosis import Confidence, DiagnosisOutcome, Role
from airflow_kstream.policy.triage.sources import ScannedLog
from airflow_kstream.policy.triage.verdict import as_stopped, diagnose
from airflow_kstream.supervise.triage.scan import own_catalogue, scanner_of
from tests.simulated.logs import (
    DRIVER,
    EXECUTOR,
    NODEMANAGER,
    OTHER_EXECUTOR,
    RESOURCEMANAGER,
    diagnosed,
    died,
    driver,
    executor,
    failing,
    line,
    stopped,
    working,
)

INVALID = (
    "org.apache.hadoop.security.token.SecretManager$InvalidToken: Invalid AMRMToken from "
    "appattempt_1700000000001_0042_000001"
)
FULL = "java.io.IOException: No space left on device"
DEAD = "InvalidToken: token (HDFS_DELEGATION_TOKEN token 17 for alice) can't be found in cache"


def refused(clock: str) -> str:
    return failing(clock, "Exception while invoking allocate over rm1. Trying to fail over immediately.", INVALID)


def test_the_drivers_token_explains_the_sigterm_of_every_executor() -> None:
    """The loud lines are the executors'; the cause stands ten minutes earlier, in the driver's log."""
    ended = executor(
        working("09:59:00"),
        line("10:10:02", "Driver nm7:4711 disassociated! Shutting down.", "ERROR", "CoarseGrainedExecutorBackend"),
        stopped("10:10:02"),
    )
    logs = {
        DRIVER: driver(
            working("09:30:00"),
            refused("10:00:00"),
            working("10:00:03"),
            refused("10:09:55"),
            died("10:10:00"),
            stopped("10:10:01"),
        ),
        EXECUTOR: ended,
        OTHER_EXECUTOR: ended,
    }
    verdict = diagnosed(logs)
    assert (verdict.cause, verdict.confidence) == ("amrm-token-invalid", Confidence.HIGH)
    assert verdict.evidence is not None
    assert (verdict.evidence.source.file, verdict.evidence.source.role) == (DRIVER, Role.DRIVER)
    assert logs[DRIVER].splitlines()[verdict.evidence.line - 1].endswith(INVALID)
    assert verdict.evidence.when == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert verdict.chain[:2] == ("amrm-token-invalid", "final-status-failed")
    assert {"sigterm", "driver-gone"} < set(verdict.chain)
    sigterm = next(step for step in verdict.timeline if step.signature == "sigterm")
    assert (sigterm.logs, sigterm.count) == (3, 3)


def test_with_two_resourcemanagers_the_update_of_the_token_is_to_blame() -> None:
    """The chain of HDFS-9276: the token was renewed, and the copy for the other ResourceManager was not."""
    over = line("10:00:01", "Failing over to rm2", writer="ConfiguredRMFailoverProxyProvider")
    verdict = diagnosed({DRIVER: driver(refused("10:00:00"), over, refused("10:09:55"), died("10:10:00"))})
    assert verdict.chain[:3] == ("ha-amrm-token-not-updated", "amrm-token-invalid", "final-status-failed")
    assert verdict.signature is not None
    assert "HDFS-9276" in verdict.signature.references


def test_executors_alone_show_consequences_and_where_to_look() -> None:
    verdict = diagnosed({EXECUTOR: executor(working("09:59:00"), stopped("10:10:02"))})
    assert (verdict.outcome, verdict.cause) == (DiagnosisOutcome.UNKNOWN, "")
    assert "the log of the driver" in verdict.hint


def test_a_trouble_that_was_over_long_before_the_end_is_no_cause() -> None:
    """A NameNode was full in the morning; the job worked all day, and ran out of memory in the evening."""
    full = failing("09:10:00", "failed", "File /out/part-0 could only be written to 0 of the 1 minReplication nodes")
    heap = failing("18:00:00", "failed", "java.lang.OutOfMemoryError: Java heap space")
    verdict = diagnosed({DRIVER: driver(full, working("12:00:00", "17:59:00"), heap, died("18:00:02"))})
    assert (verdict.cause, verdict.confidence) == ("java-heap-full", Confidence.HIGH)
    assert [step.signature for step in verdict.earlier] == ["no-space-on-hdfs"]


def test_a_trouble_that_went_on_until_the_end_wins_over_one_that_had_stopped() -> None:
    skew = failing("17:50:00", "failed", "KrbException: Clock skew too great (37)")
    heap = failing("18:00:00", "failed", "java.lang.OutOfMemoryError: Java heap space")
    verdict = diagnosed({DRIVER: driver(skew, working("17:59:00"), heap, died("18:00:02"))})
    assert verdict.cause == "java-heap-full"


def test_what_came_first_of_a_known_chain_is_the_cause() -> None:
    """A rotated keytab lets no new tokens come; a day later the old ones end. Only its log's beginning tells."""
    rotated = failing(
        "09:30:00",
        "Failed to update tokens, will try again in 1 h!",
        "javax.security.auth.login.LoginException: Checksum failed",
    )
    later = failing("18:00:00", "failed", DEAD)
    verdict = diagnosed({DRIVER: driver(rotated, working("17:59:00"), later, died("18:00:02"))})
    assert verdict.chain[:3] == ("kerberos-key-rotated", "tokens-not-updated", "hdfs-token-not-in-cache")
    assert verdict.confidence is Confidence.HIGH


def test_the_order_in_which_two_came_decides_which_explains_the_other() -> None:
    """What leads to another one does not explain one that came before it."""
    dead, rotated = failing("17:59:50", "failed", DEAD), failing("17:59:58", "failed", "KrbException: Checksum failed")
    verdict = diagnosed({DRIVER: driver(dead, rotated, died("18:00:02"))})
    assert verdict.cause == "hdfs-token-not-in-cache"
    assert [step.signature for step in verdict.others] == ["kerberos-key-rotated"]
    assert verdict.confidence is Confidence.LOW


def test_an_error_while_it_cleans_up_after_its_end_is_no_cause() -> None:
    heap = failing("18:00:00", "failed", "java.lang.OutOfMemoryError: Java heap space")
    cleaning = failing(
        "18:00:40", "Exception while deleting local spark dir", "java.io.IOException: No space left on device"
    )
    verdict = diagnosed({DRIVER: driver(heap, died("18:00:02"), cleaning)})
    assert (verdict.cause, verdict.others) == ("java-heap-full", ())


def test_causes_that_came_at_once_are_named_as_possible_ones() -> None:
    full = failing("18:00:00", "failed", "java.io.IOException: No space left on device")
    denied = failing("18:00:01", "failed", "TopicAuthorizationException: Not authorized to access topics: [orders]")
    verdict = diagnosed({DRIVER: driver(full, denied, died("18:00:02"))})
    assert verdict.confidence is Confidence.LOW
    assert {verdict.cause, *(step.signature for step in verdict.others)} == {"disk-full", "kafka-not-authorized"}


def test_a_refused_connection_is_no_certain_cause() -> None:
    """It counts when nothing better is known, and says so."""
    verdict = diagnosed(
        {
            DRIVER: driver(
                failing("18:00:00", "failed", "java.net.ConnectException: Connection refused"), died("18:00:02")
            )
        }
    )
    assert (verdict.cause, verdict.confidence) == ("connection-refused", Confidence.LOW)


def test_an_unknown_error_is_called_unknown_and_shown_first() -> None:
    """Known noise and what was logged all the time come after the line that is new."""
    often = "".join(
        failing(f"09:{minute:02}:00", "Slow sink", "com.example.SlowException: 17 ms") for minute in range(1, 59)
    )
    new = failing(
        "10:00:00",
        "User class threw exception: com.example.LedgerException",
        "com.example.LedgerException: entry 4711 is out of balance",
    )
    verdict = diagnosed({DRIVER: driver(often, new, died("10:00:01"))})
    assert (verdict.outcome, verdict.cause, verdict.confidence) == (DiagnosisOutcome.UNKNOWN, "", None)
    assert verdict.templates[0].text == "Caused by: com.example.LedgerException: entry # is out of balance"
    assert verdict.templates[0].new
    slow = next(template for template in verdict.templates if "SlowException" in template.text)
    assert (slow.new, slow.count) == (False, 58)


def test_the_unexplained_end_of_one_that_its_supervisor_stopped_is_no_failure() -> None:
    verdict = diagnosed({DRIVER: driver(died("10:00:01"))})
    assert verdict.outcome is DiagnosisOutcome.UNKNOWN
    stop = as_stopped(verdict, "it was stopped")
    assert (stop.outcome, stop.hint, stop.templates) == (DiagnosisOutcome.FINE, "it was stopped", ())


NOISE = [
    "org.apache.hadoop.ipc.StandbyException: Operation category READ is not supported in state standby",
    "Unable to load native-hadoop library for your platform... using builtin-java classes where applicable",
    "org.apache.hadoop.ipc.RetriableException: org.apache.hadoop.security.token.SecretManager$InvalidToken: "
    "token (token for alice: HDFS_DELEGATION_TOKEN owner=alice) can't be found in cache",
]


@pytest.mark.parametrize("words", NOISE)
def test_noise_right_before_an_unexplained_end_is_no_cause(words: str) -> None:
    noise = line("10:00:00", words, "WARN")
    verdict = diagnosed({DRIVER: driver(noise, died("10:00:01"))})
    assert (verdict.outcome, verdict.cause, verdict.templates) == (DiagnosisOutcome.UNKNOWN, "", ())


def test_a_stack_trace_below_noise_is_noise_too() -> None:
    retried = failing("10:00:00", NOISE[2], f"org.apache.hadoop.ipc.RemoteException: {DEAD}")
    assert diagnosed({DRIVER: driver(retried, died("10:00:01"))}).cause == ""


def test_a_graceful_stop_is_no_failure() -> None:
    """Its executors get a signal as well."""
    done = line("10:00:00", "Final app status: SUCCEEDED, exitCode: 0")
    asked = line("10:00:01", "Driver commanded a shutdown", writer="CoarseGrainedExecutorBackend")
    verdict = diagnosed({DRIVER: driver(done), EXECUTOR: executor(asked, stopped("10:00:02"))})
    assert (verdict.outcome, verdict.cause) == (DiagnosisOutcome.FINE, "")


def test_a_second_attempt_that_failed_after_one_that_succeeded_is_a_failure() -> None:
    done = line("10:00:00", "Final app status: SUCCEEDED, exitCode: 0")
    heap = failing("18:00:00", "failed", "java.lang.OutOfMemoryError: Java heap space")
    assert diagnosed({DRIVER: driver(done, heap, died("18:00:02"))}).cause == "java-heap-full"


def test_a_log_without_trouble_is_fine() -> None:
    assert diagnosed({DRIVER: driver(working("10:00:00", "10:01:00"))}).outcome is DiagnosisOutcome.FINE


def test_an_unknown_error_of_what_still_runs_is_no_failure() -> None:
    text = driver(failing("10:00:00", "Slow sink", "com.example.SlowException: 17 ms"), working("10:00:01"))
    scanned = [ScannedLog(DRIVER, scanner_of(own_catalogue()).scan([text.encode()]))]
    assert diagnose(scanned, own_catalogue()).outcome is DiagnosisOutcome.UNKNOWN
    assert diagnose(scanned, own_catalogue(), runs=True).outcome is DiagnosisOutcome.FINE


def test_without_an_end_in_the_logs_no_cause_is_certain() -> None:
    verdict = diagnosed({DRIVER: driver(failing("10:00:00", "failed", DEAD))})
    assert (verdict.cause, verdict.confidence) == ("hdfs-token-not-in-cache", Confidence.MEDIUM)


QUERY = (
    "INFO MicroBatchExecution: Streaming query made progress: 17 rows\n",
    "ERROR MicroBatchExecution: Query [id = 1, runId = 2] terminated with error\n",
    "java.io.IOException: No space left on device\n",
)


@pytest.mark.parametrize(("between", "cause"), [(0, "disk-full"), (98, "disk-full"), (99, "")])
def test_a_cause_stands_a_few_lines_below_an_end_without_a_moment(between: int, cause: str) -> None:
    """Spark and Flink announce that something failed, and print the exception below."""
    working, announced, exception = QUERY
    ended = working.replace("Streaming query", "Final app status: FAILED")
    verdict = diagnosed({"driver.log": working * 9 + announced + working * between + ended + exception})
    assert verdict.cause == cause
    assert verdict.confidence is (Confidence.MEDIUM if cause else None)


def test_a_cause_below_another_logs_end_is_not_of_that_one() -> None:
    working, announced, exception = QUERY
    verdict = diagnosed({"a/driver.log": announced + working, "b/driver.log": working + exception})
    assert verdict.confidence is Confidence.MEDIUM
    dated = diagnosed({DRIVER: driver(died("10:00:00"), failing("10:01:00", "failed", FULL))})
    assert (dated.cause, [step.signature for step in dated.earlier]) == ("", ["disk-full"])


TRACEBACK = (
    'Traceback (most recent call last):\n  File "/jobs/a.py", line 7, in <module>\n    main()\n'
    "billing.ClosedMonth: month 2026-02 is closed\n"
)
PRINTED = {
    "java": (
        'Exception in thread "main" com.example.ClosedMonth: x\n\tat a.B.c(B.java:1)\n',
        "com.example.ClosedMonth",
    ),
    "java's cause": (
        'Exception in thread "main" a.Outer: x\n\tat a.B.c(B.java:1)\nCaused by: a.LedgerException: y\n',
        "Caused by: a.LedgerException: y",
    ),
    "python": (TRACEBACK, "billing.ClosedMonth: month #-# is closed"),
    "python in a thread": (f"Exception in thread Thread-7 (poll):\n{TRACEBACK}", "billing.ClosedMonth"),
    "python, cut off": (TRACEBACK.partition("    ")[0], "Traceback (most recent call last):"),
    "requirement": (
        "requirement failed: the month is open\n",
        "requirement failed",
    ),
}


@pytest.mark.parametrize("printed", PRINTED)
def test_an_exception_that_was_printed_is_not_of_the_record_above(printed: str) -> None:
    """What ends a process on stderr without a logger has no level of its own."""
    text, words = PRINTED[printed]
    verdict = diagnosed({DRIVER: driver(working("10:00:00"), text, line("10:00:02", "Invoking stop()"))})
    assert (verdict.outcome, verdict.cause) == (DiagnosisOutcome.UNKNOWN, "")
    assert words in verdict.templates[0].text
    assert verdict.templates[0].first.level == "ERROR"


def test_a_printed_exception_that_a_signature_knows_is_its_cause() -> None:
    text = TRACEBACK.replace("billing.ClosedMonth: month 2026-02 is closed", FULL)
    verdict = diagnosed({DRIVER: driver(working("10:00:00"), text)})
    assert (verdict.cause, verdict.confidence) == ("disk-full", Confidence.MEDIUM)


HEALTHY = {
    "quoted": line("10:00:01", "retrying after com.example.SlowException: 17 ms"),
    "a warning's trace": line("10:00:01", "will retry\ncom.example.SlowException: x\n\tat a.B.c(B.java:1)", "WARN"),
    "a warning's traceback": line("10:00:01", f"will retry\n{TRACEBACK}", "WARN"),
    "a warning's requirement": line("10:00:01", "will retry\nIllegalState: requirement failed: x", "WARN"),
    "an info's trace": line("10:00:01", "will retry\njava.net.ConnectException: x\n\tat a.B.c(B.java:1)"),
    "python's own": line("10:00:01", f"x\nException ignored in: <function Pool.__del__ at 0x7f>\n{TRACEBACK}"),
    "a logger's own": line("10:00:01", f"x\n--- Logging error ---\n{TRACEBACK}"),
    "airflow": '{"timestamp":"2026-03-01T10:00:01.345751Z","level":"info","event":"a SlowException, tried again"}\n',
    "airflow's warning": '{"timestamp":"2026-03-01T10:00:01.3Z","level":"warning","event":"a SlowException"}\n',
    "another's answer": line("10:00:01", 'it said {"level":"error","event":"SlowException"}'),
}


@pytest.mark.parametrize("healthy", HEALTHY)
def test_what_was_tried_again_is_no_failure(healthy: str) -> None:
    logs = {DRIVER: driver(working("10:00:00"), HEALTHY[healthy], working("10:00:02"))}
    assert diagnosed(logs).outcome is DiagnosisOutcome.FINE


@pytest.mark.parametrize("traced", [name for name in HEALTHY if name.endswith(("trace", "traceback", "requirement"))])
def test_an_exception_after_which_nothing_came_needs_a_look(traced: str) -> None:
    """Whatever the level of its record is: it may be where the process ended."""
    for after in ("", line("10:00:02", "Shutdown hook called")):
        verdict = diagnosed({"attempt=1.log": HEALTHY[traced] + after})
        assert (verdict.outcome, verdict.templates[0].first.level) == (DiagnosisOutcome.UNKNOWN, "ERROR")


@pytest.mark.parametrize("quoted", ["quoted", "python's own", "a logger's own", "airflow", "airflow's warning"])
def test_an_exception_that_is_only_quoted_needs_no_look(quoted: str) -> None:
    assert diagnosed({"attempt=1.log": HEALTHY[quoted]}).outcome is DiagnosisOutcome.FINE


TRIED_AGAIN = "Lost task 0.{} in stage 4.0 (TID 9) (nm7 executor 3): java.io.IOException: Connection reset by peer"


@pytest.mark.parametrize(("attempt", "outcome"), [(0, DiagnosisOutcome.FINE), (3, DiagnosisOutcome.UNKNOWN)])
def test_a_task_that_is_tried_again_is_no_end(attempt: int, outcome: DiagnosisOutcome) -> None:
    lost = line("10:00:00", TRIED_AGAIN.format(attempt), "WARN", "TaskSetManager")
    assert diagnosed({DRIVER: driver(lost, working("10:00:01"))}).outcome is outcome
    assert diagnosed({DRIVER: driver(working("09:59:59"), lost)}).outcome is DiagnosisOutcome.UNKNOWN


PROGRAMS = [
    "panic: runtime error: index out of range",
    "Segmentation fault (core dumped)",
    "Command ended with return code 1",
    "Error in library(foo) : there is none",
    "kinit: no such thing while renewing",
    "Error: nothing to run",
    "/bin/sh: spark3-submit: not there",
    "Terminated",
    "Bus error (core dumped)",
    "/opt/run.sh: line 9:  4711 Killed                  python load.py",
    "run.sh: line 3: DAY: unbound variable",
    "sh: 1: spark3-submit: not found",
    "-bash: /opt/run.sh: Permission denied",
    "tar: /backup: Cannot open: Operation not permitted",
    "fatal: not a git repository",
    "oom-kill event",
    "BUILD FAILED",
    "load.py: error: the following arguments are required: --day",
    'psql:load.sql:7: ERROR:  relation "orders" does not exist',
    "FATA[0009] schema 7 is not compatible with schema 6",
    "fail: Ledger.Worker[0]",
    "SCHWERWIEGEND: der Monat ist abgeschlossen",
    "GRAVE: le mois est clos",
    "Mar  1 10:00:00 nm7 systemd[1]: orders.service: Main process exited, code=killed, status=9/KILL",
]
LEVELED = [
    "ERROR month 2026-02 is closed",
    "ERROR: 0 rows of month 2026-02",
    "[FATAL] month 2026-02 is closed",
    "ERROR:root:month 2026-02 is closed",
    'level=fatal msg="month 2026-02 is closed"',
    'msg="month is closed" ts=2026-03-01T10:00:01Z level="error"',
    'lvl=eror msg="month 2026-02 is closed"',
    '{"msg":"month is closed","severity":"ERROR"}',
    '{"levelname": "CRITICAL", "message": "month is closed"}',
    '{"level":50,"time":1772359201000,"msg":"month is closed"}',
    '{"version":"1.1","short_message":"month is closed","level":3}',
    '{"log":{"level":"error"},"message":"month is closed"}',
]
# As the layers of a log's form never see it: it begins with lines of another form.
FAR = working("10:00:00") * 300


@pytest.mark.parametrize("above", [working("10:00:00"), FAR], ids=["near", "far"])
@pytest.mark.parametrize("words", LEVELED)
def test_a_record_without_a_moment_has_its_own_level(words: str, above: str) -> None:
    verdict = diagnosed({"job.log": f"{above}{words}\n{working('10:00:02')}"})
    assert verdict.outcome is DiagnosisOutcome.UNKNOWN
    assert "month" in verdict.templates[0].first.text
    for fine in ("info", "INFO"):
        calm = re.sub(r"ERROR|FATAL|CRITICAL|fatal|error|eror|\b50\b|\b3\b", fine, words).replace(f":{fine},", ":30,")
        assert diagnosed({"job.log": f"{above}{calm}\n"}).outcome is DiagnosisOutcome.FINE, calm


@pytest.mark.parametrize("around", ["\t{}\t", " {}: ", " {} ", " | {} | ", " [{}] "])
def test_a_level_in_small_letters_stands_behind_the_moment(around: str) -> None:
    def log(level: str) -> dict[str, str]:
        levels = ("info", level, "info")
        return {"job.log": "".join(f"2026-03-01T10:00:00.123Z{around.format(each)}no error\n" for each in levels)}

    assert diagnosed(log("error")).outcome is DiagnosisOutcome.UNKNOWN
    assert diagnosed(log("warn")).outcome is DiagnosisOutcome.FINE


CALM = [
    "+ grep -c ERROR old.log",
    "++ export LEVEL=FATAL",
    "bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)",
    "bash: no job control in this shell",
    'time=2026-03-01T10:00:01Z level=info msg="started with level=error" error_count=0',
    "log4j.logger.level=error",
    "ERROR: 0",
    "ERROR: 0, WARN: 0",
    "level=error appender=console",
    "Killed=0 failed=0",
]


@pytest.mark.parametrize("calm", CALM)
def test_a_word_of_trouble_is_no_trouble(calm: str) -> None:
    verdict = diagnosed({"job.log": f"{line('10:00:00', 'begins')}{calm}\n{line('10:00:01', 'goes on')}"})
    assert verdict.outcome is DiagnosisOutcome.FINE, verdict.templates


@pytest.mark.parametrize("words", PROGRAMS)
def test_the_words_of_a_program_that_a_job_started_are_shown(words: str) -> None:
    verdict = diagnosed({"job.log": f"{line('10:00:00', 'renews')}{words}\n{line('10:00:01', 'goes on')}"})
    assert (verdict.outcome, verdict.templates[0].first.text) == (DiagnosisOutcome.UNKNOWN, words)


def test_sigterm_alone_is_a_stop_where_the_context_was_stopped_in_order() -> None:
    asked = line("10:00:00", "RECEIVED SIGNAL TERM", "ERROR", "SignalUtils")
    in_order = line("10:00:01", "Successfully stopped SparkContext", writer="SparkContext")
    assert diagnosed({DRIVER: driver(asked, in_order)}).outcome is DiagnosisOutcome.FINE
    assert diagnosed({DRIVER: driver(asked)}).outcome is DiagnosisOutcome.UNKNOWN
    failed = line("09:59:59", "month 2026-02 is closed", "ERROR")
    assert diagnosed({DRIVER: driver(failed, asked, in_order)}).outcome is DiagnosisOutcome.UNKNOWN


@pytest.mark.parametrize("above", ["", line("10:00:00", "Running Spark version 4.0.0")])
@pytest.mark.parametrize("order", ["timestamp level event", "level event timestamp"])
def test_an_error_in_airflows_json_is_a_failure(above: str, order: str) -> None:
    words = {"timestamp": "2026-03-01T10:00:01.346210Z", "level": "error", "event": "Task failed with exception"}
    record = json.dumps({key: words[key] for key in order.split()}, separators=(",", ":"))
    verdict = diagnosed({"attempt=1.log": f"{above}{record}\n"})
    assert (verdict.outcome, verdict.cause) == (DiagnosisOutcome.UNKNOWN, "")
    assert "Task failed with exception" in verdict.templates[0].text


def test_a_token_at_its_max_lifetime_explains_an_attempt_a_week_later() -> None:
    """The ResourceManager gave the token up; a failed attempt could not be repeated, nor were its logs kept."""
    owner = "(HDFS_DELEGATION_TOKEN token 17 for alice)"
    limit = (
        "2026-02-22 10:00:00,398 ERROR DelegationTokenRenewer: Exception renewing token Kind: HDFS_DELEGATION_TOKEN, "
        "Service: ha-hdfs:prod. Not rescheduled\n"
        f"org.apache.hadoop.security.token.SecretManager$InvalidToken: yarn tried to renew an expired token {owner} "
        "max expiration date: 2026-02-22 10:00:00,393+0000\n"
    )
    again = (
        "2026-03-01 10:00:00,665 WARN ResourceLocalizationService: { hdfs://prod/user/alice/.flink/a.jar } failed: "
        f"token {owner} can't be found in cache\n"
        "2026-03-01 10:00:09,665 ERROR AppLogAggregatorImpl: Cannot create writer for app "
        "application_1700000000001_0042. Skip log upload this time.\n"
    )
    verdict = diagnosed({RESOURCEMANAGER: limit, NODEMANAGER: again})
    assert verdict.cause == "token-max-lifetime"
    assert verdict.chain[:3] == ("token-max-lifetime", "rm-gave-token-up", "hdfs-token-not-in-cache")
    assert verdict.evidence is not None
    assert verdict.evidence.source.role is Role.RESOURCEMANAGER
    assert [step.signature for step in verdict.timeline][-1] == "log-aggregation-refused"


def test_a_checkpoint_whose_thread_reads_a_socket_hangs() -> None:
    """Each frame alone means nothing: idle threads read sockets, too, and other threads write checkpoints."""
    reads, writes = (
        "\tat java.net.SocketInputStream.socketRead0(Native Method)\n",
        "\tat org.apache.spark.rdd.ReliableCheckpointRDD$.write(R.scala:1)\n",
    )
    between = "\tat org.example.Some.method(Some.java:17)\n"
    assert diagnosed({"dump.txt": reads + between * 30 + writes}).cause == "checkpoint-hangs"
    assert diagnosed({"dump.txt": reads + between * 100 + writes}).outcome is DiagnosisOutcome.FINE
    assert diagnosed({"dump.txt": reads * 5}).outcome is DiagnosisOutcome.FINE
    two_threads = f'"one" #1 prio=5 os_prio=0\n{reads}\n"two" #2 prio=5 os_prio=0\n{writes}'
    assert diagnosed({"dump.txt": two_threads}).outcome is DiagnosisOutcome.FINE
    assert diagnosed({"dump.txt": two_threads.replace('"two" #2 prio=5 os_prio=0\n', "")}).cause == "checkpoint-hangs"


def test_a_line_that_says_for_how_long_it_went_on_began_before_it_was_written() -> None:
    """A host stood still for two minutes. Others noticed, and acted, before it could write a word of it."""
    kernel = "Mar  1 10:02:00 nm7 kernel: BUG: soft lockup - CPU#3 stuck for 120s! [java:4711]\n"
    lost = (
        "2026-03-01 10:00:40,100 INFO Task: Sink: Orders (1/1) switched from RUNNING to FAILED.\n"
        "2026-03-01 10:00:41,100 ERROR StreamTask: Error during disposal of stream operator.\n"
        "java.io.InterruptedIOException: Interrupted while waiting for data to be acknowledged by pipeline\n"
    )
    verdict = diagnosed({"taskmanager.log": lost, "kern.log": kernel})
    assert verdict.chain[:2] == ("host-lockup", "close-interrupted")


def test_times_are_compared_across_zones() -> None:
    """The driver's file was uploaded by a server in Shanghai, whose log says so; the daemon's lines name their zone."""
    header = (
        "Container: container_1700000000001_0042_01_000001 on nm7_8041\n"
        "LogType:stderr\nLog Upload Time:Sun Mar 01 18:10:00 +0800 2026\n"
    )
    body = driver(refused("18:00:00"), died("18:00:20"))
    later = "2026-03-01T10:00:10.000Z ERROR FSEditLog: Error: flush failed for required journal (JournalAndStream)\n"
    verdict = diagnosed({"app.log": header + body, "namenode.log": later})
    assert verdict.cause == "amrm-token-invalid"
    assert verdict.evidence is not None
    assert verdict.evidence.when == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert verdict.evidence.source.container == "container_1700000000001_0042_01_000001"


def test_a_password_in_a_log_line_is_masked() -> None:
    leak = failing("10:00:00", "failed", "java.io.IOException: No space left on device, password=hunter2")
    verdict = diagnosed({DRIVER: driver(leak, died("10:00:01"))})
    assert "hunter2" not in str(verdict.to_json())
    assert "password=***" in str(verdict.to_json())


CONSEQUENCES_AND_WEAK_CAUSES = (
    "ClosedChannelException",
    "Lost executor 7 on nm7",
    "FetchFailedException: x",
    "Job aborted due to stage failure: x",
    "java.lang.InterruptedException",
    "Connection refused",
    "Read timed out",
    "GSS initiate failed",
    "lost the leadership",
    "Python worker exited unexpectedly",
    "Address already in use",
    "Container killed on request. Exit code is 143",
)


def test_the_timeline_has_ten_lines_at_most_and_keeps_cause_and_end() -> None:
    noise = "".join(failing(f"09:59:{second:02}", words) for second, words in enumerate(CONSEQUENCES_AND_WEAK_CAUSES))
    verdict = diagnosed(
        {
            DRIVER: driver(
                noise, failing("10:00:00", "x", "java.io.IOException: No space left on device"), died("10:00:01")
            )
        }
    )
    shown = [step.signature for step in verdict.timeline]
    assert len(shown) == 10
    assert {"disk-full", "final-status-failed"} < set(shown)
    moments = [step.mark.when for step in verdict.timeline if step.mark.when]
    assert moments == sorted(moments)
