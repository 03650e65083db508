"""The verdict on lines that no logger wrote, and on what stands below an end that has no moment."""

from __future__ import annotations

import json
import re

import pytest

from airflow_kstream.model.logs.diagnosis import Confidence, DiagnosisOutcome
from tests.simulated.logs import (
    DRIVER,
    diagnosed,
    died,
    driver,
    failing,
    line,
    working,
)
from tests.unit.triage.test_verdict import FULL

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


@pytest.mark.parametrize(
    "strange",
    [
        f'"message":{"[" * 3000}{"]" * 3000}',
        '"timestamp":1e999,"message":"x"',
        '"timestamp":NaN,"message":"x"',
        '"message":"\\ud800"',
        '"severity":"\\ud800","message":"x"',
    ],
    ids=["deep", "endless", "no number", "half a character", "half a level"],
)
def test_a_line_of_json_as_no_logger_writes_it_hides_no_other(strange: str) -> None:
    """A job prints what it likes."""
    record = json.dumps({"timestamp": "2026-03-01T10:00:01.346210Z", "level": "ERROR", "message": FULL})
    assert diagnosed({"attempt=1.log": f'{record}\n{{"name":"a",{strange}}}\n'}).cause == "disk-full"


@pytest.mark.parametrize("above", ["", line("10:00:00", "Running Spark version 4.0.0")])
@pytest.mark.parametrize("order", ["timestamp level event", "level event timestamp"])
def test_an_error_in_airflows_json_is_a_failure(above: str, order: str) -> None:
    words = {"timestamp": "2026-03-01T10:00:01.346210Z", "level": "error", "event": "Task failed with exception"}
    record = json.dumps({key: words[key] for key in order.split()}, separators=(",", ":"))
    verdict = diagnosed({"attempt=1.log": f"{above}{record}\n"})
    assert (verdict.outcome, verdict.cause) == (DiagnosisOutcome.UNKNOWN, "")
    assert "Task failed with exception" in verdict.templates[0].text
