"""Stories of failures in several logs: which line was the cause, and which only its consequence."""

from __future__ import annotations

import time
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


def test_an_unknown_error_that_the_stream_outlived_for_hours_is_no_failure() -> None:
    odd = failing("10:00:00", "Slow sink", "com.example.SlowException: 17 ms")
    assert diagnosed({DRIVER: driver(odd, working("12:00:00"))}).outcome is DiagnosisOutcome.FINE
    ended = diagnosed({DRIVER: driver(odd, working("12:00:00"), died("12:00:01"))})
    assert ended.outcome is DiagnosisOutcome.UNKNOWN
    assert any("SlowException" in template.text for template in ended.templates), "it may be why"


def test_a_report_to_yarn_that_is_tried_again_ends_nothing() -> None:
    away = "java.net.ConnectException: Call From nm7/10.0.0.7 to rm1:8030 failed on connection exception"
    failed = line("10:00:00", f"Reporter thread fails 1 time(s) in a row.\n{away}", "WARN")
    assert diagnosed({DRIVER: driver(failed)}).cause == "rm-unreachable"
    assert diagnosed({DRIVER: driver(failed, working("12:00:00"))}).outcome is DiagnosisOutcome.FINE


def test_a_trouble_that_was_kept_of_the_morning_and_of_the_shutdown_went_on_between() -> None:
    """Of many lines the first and the last are kept: those right before the end are neither."""
    clocks = [f"09:00:{number}" for number in range(10, 30)]
    near = [f"17:59:{number}" for number in range(30, 50)]
    after = [f"18:00:{number}" for number in range(20, 30)]
    before, late = ("".join(failing(clock, "failed", FULL) for clock in group) for group in (clocks + near, after))
    assert diagnosed({DRIVER: driver(before, died("18:00:00"), late)}).cause == "disk-full"
    few = "".join(failing(clock, "failed", FULL) for clock in clocks[:10])
    assert diagnosed({DRIVER: driver(few, died("18:00:00"), late[: len(late) // 5])}).cause == ""


def test_what_a_stream_outlived_for_half_an_hour_it_got_over() -> None:
    words = "Lost task 3.0 in stage 8.0 (TID 9) (nm7 executor 3): " + FULL
    trouble = line("10:00:00", words, "WARN", "TaskSetManager")
    lost = line("10:00:01", "Lost executor 3 on nm7: No space left", "ERROR", "YarnClusterScheduler")
    assert diagnosed({DRIVER: driver(trouble, lost, working("10:29:00"))}).cause == "disk-full"
    verdict = diagnosed({DRIVER: driver(trouble, lost, working("10:31:00"))})
    assert (verdict.outcome, [step.signature for step in verdict.earlier]) == (DiagnosisOutcome.FINE, ["disk-full"])


def test_a_stream_that_works_does_not_outlive_tokens_that_are_not_renewed() -> None:
    words = "Failed to update tokens, will try again in 3600s.  Are all tokens expired?"
    failed = line("10:00:00", words, "WARN", "HadoopDelegationTokenManager")
    assert diagnosed({DRIVER: driver(failed, working("20:00:00"))}).cause == "tokens-not-updated"


def test_a_query_that_ended_is_a_failure_although_another_one_works() -> None:
    ended = failing("10:00:00", "Query orders [id = 17] terminated with error", FULL, writer="MicroBatchExecution")
    assert diagnosed({DRIVER: driver(ended, working("20:00:00"))}).cause == "disk-full"


@pytest.mark.parametrize(("second", "cause"), [("5f1e", ""), ("77aa", "pipeline-failed")])
def test_a_query_that_works_proves_nothing_of_another_one_in_its_application(second: str, cause: str) -> None:
    begun = [f"Starting orders [id = {of}, runId = 1]. Use hdfs://ns/cp to store." for of in ("5f1e", second)]
    starts = "".join(line("09:00:00", words, writer="MicroBatchExecution") for words in begun)
    failed = failing("10:00:00", "DataStreamer Exception", "java.io.IOException: All datanodes are bad. Aborting...")
    assert diagnosed({DRIVER: driver(starts, failed, working("20:00:00"))}).cause == cause


def flink_job(clock: str, job: str, state: str) -> str:
    return line(clock, f"Job {job} ({job * 32}) switched from state RUNNING to {state}.", writer="ExecutionGraph")


def test_of_a_session_of_flink_a_job_that_ends_well_settles_its_own_end_alone() -> None:
    failed = flink_job("10:00:00", "a", "FAILED") + f"Caused by: {FULL}\n"
    assert diagnosed({"jobmanager.log": failed + flink_job("18:00:00", "b", "FINISHED")}).cause == "disk-full"
    again = diagnosed({"jobmanager.log": failed + flink_job("18:00:00", "a", "FINISHED")})
    assert again.outcome is DiagnosisOutcome.FINE


def test_a_task_of_flink_that_was_restarted_and_works_is_no_failure() -> None:
    failed = line("10:00:00", "Sink (1/1) (5f1e) switched from RUNNING to FAILED.", "WARN", "Task") + f"{FULL}\n"
    works = line("18:00:00", "Completed checkpoint 17 for job 5f1e (4711 bytes).", writer="CheckpointCoordinator")
    assert diagnosed({"jobmanager.log": failed}).cause == "disk-full"
    assert diagnosed({"jobmanager.log": failed + works}).outcome is DiagnosisOutcome.FINE


def test_a_pause_of_thousands_of_years_is_no_time_to_reckon_with() -> None:
    words = f"Detected pause in JVM or host machine: pause of approximately {'9' * 20}ms"
    pause = line("10:00:00", words, "WARN", "JvmPauseMonitor")
    assert diagnosed({DRIVER: driver(pause, died("10:00:01"))}).cause == "long-pause"


def test_without_an_end_in_the_logs_no_cause_is_certain() -> None:
    verdict = diagnosed({DRIVER: driver(failing("10:00:00", "failed", DEAD))})
    assert (verdict.cause, verdict.confidence) == ("hdfs-token-not-in-cache", Confidence.MEDIUM)


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


def test_dumps_of_many_threads_cost_no_more_than_their_lines() -> None:
    """Of four thousand heads of threads a thousand are not kept, and where these were no two frames are of one."""
    reads, writes = (
        "\tat java.net.SocketInputStream.socketRead0(Native Method)\n",
        "\tat org.apache.spark.rdd.ReliableCheckpointRDD$.write(R.scala:1)\n",
    )
    threads = f'"one" #1 prio=5 os_prio=0\n{reads}"two" #2 prio=5 os_prio=0\n{writes}' * 2000
    began = time.process_time()
    assert diagnosed({"dump.txt": threads}).outcome is DiagnosisOutcome.FINE
    assert time.process_time() - began < 5


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
