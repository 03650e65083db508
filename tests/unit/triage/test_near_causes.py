"""Failures whose lines are alike: each is told from its neighbours, and from what a client survives by itself."""

from __future__ import annotations

import pytest

from airflow_kstream.model.logs.diagnosis import Confidence, DiagnosisOutcome
from tests.simulated.logs import DRIVER, EXECUTOR, diagnosed, died, driver, executor, failing, line, stopped, working

_APPEND = "Failed to APPEND_FILE /wal/log for DFSClient_NONMAPREDUCE_1_1 on 10.0.0.7 because "
_CREATED = f"org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException: {_APPEND}"
_DEAD = "org.apache.hadoop.security.token.SecretManager$InvalidToken: "


@pytest.mark.parametrize(
    ("cause", "refusal"),
    [
        (
            "file-held-by-other",
            f"{_CREATED}this file lease is currently owned by DFSClient_NONMAPREDUCE_2_1",
        ),
        ("file-held-by-itself", f"{_CREATED}DFSClient_NONMAPREDUCE_1_1 is already the current lease holder."),
        ("lease-leaked", f"{_CREATED}the file is under construction but no leases found."),
        (
            "lease-recovery-running",
            f"RecoveryInProgressException: {_APPEND}lease recovery is in progress.",
        ),
    ],
)
def test_a_file_that_is_open_is_refused_for_four_reasons(cause: str, refusal: str) -> None:
    assert diagnosed({DRIVER: driver(failing("10:00:00", "failed", refusal), died("10:00:01"))}).cause == cause


@pytest.mark.parametrize(
    ("cause", "refusal"),
    [
        ("hdfs-token-expired", f"{_DEAD}token (HDFS_DELEGATION_TOKEN token 17 for alice) is expired"),
        ("hdfs-token-expired", f"{_DEAD}Token  has expired, current time: 2026-03-01 10:00:00,000+0000"),
        ("hdfs-token-not-in-cache", f"{_DEAD}Token for real user: , can't be found in cache"),
        ("kms-token-dead", f"{_DEAD}token (kms-dt owner=alice, renewer=yarn, sequenceNumber=4) is expired"),
        ("hbase-token-dead", f"{_DEAD}Token has expired"),
        ("rm-token-dead", f"{_DEAD}token (RM_DELEGATION_TOKEN owner=alice, sequenceNumber=3) can't be found in cache"),
    ],
)
def test_a_dead_token_is_of_the_service_that_made_it(cause: str, refusal: str) -> None:
    verdict = diagnosed({DRIVER: driver(failing("10:00:00", "failed", refusal), died("10:00:01"))})
    assert (verdict.cause, verdict.confidence) == (cause, Confidence.HIGH)


@pytest.mark.parametrize(
    "words",
    [
        "ConsumerConfig values: \n\tmax.poll.interval.ms = 300000\n\tmax.poll.records = 500",
        "java.net.ConnectException: Call From nm7/10.0.0.7 to rm1:8030 failed on connection exception: "
        "java.net.ConnectException: Connection refused, while invoking ApplicationMasterProtocolPBClientImpl.allocate "
        "over rm1 after 1 failover attempts. Trying to failover after sleeping for 17042ms.",
        "I/O error constructing remote block reader.\njava.net.ConnectException: Connection refused",
        "[Consumer clientId=a] Error sending fetch request (sessionId=1, epoch=2) to node 3: "
        "org.apache.kafka.common.errors.DisconnectException.",
        "[Consumer clientId=a] Bootstrap broker kafka1:9092 (id: -1 rack: null) disconnected",
    ],
)
def test_what_a_client_survives_by_itself_is_no_cause(words: str) -> None:
    log = driver(line("10:00:00", words, "WARN"), working("10:00:01", "10:05:00"))
    assert diagnosed({DRIVER: log}).outcome is DiagnosisOutcome.FINE


def test_a_resourcemanager_that_stays_away_is_a_cause() -> None:
    away = (
        "java.net.ConnectException: Call From nm7/10.0.0.7 to rm1:8030 failed on connection exception: "
        "java.net.ConnectException: Connection refused, while invoking ApplicationMasterProtocolPBClientImpl.allocate "
        "over rm1 after 29 failover attempts. Trying to failover after sleeping for 17042ms."
    )
    assert diagnosed({DRIVER: driver(line("10:00:00", away), died("10:00:01"))}).cause == "rm-unreachable"


def test_a_checkpoint_that_failed_for_hdfs_is_hdfs_failure() -> None:
    full = failing("10:00:00", "failed", "File /ckpt/17 could only be written to 0 of the 1 minReplication nodes")
    gave_up = line("10:00:10", "Checkpoint 17 of job 5f1e expired before completing.") + line(
        "10:00:11", "FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold."
    )
    verdict = diagnosed({EXECUTOR: executor(full), DRIVER: driver(gave_up, died("10:00:12"))})
    assert (verdict.cause, verdict.confidence) == ("no-space-on-hdfs", Confidence.HIGH)
    assert {"checkpoint-expired", "flink-checkpoints-failed"} < set(verdict.chain)


def test_a_heap_that_a_tls_alert_filled_is_not_too_small() -> None:
    heap = (
        "failed\njava.lang.OutOfMemoryError: Java heap space\n\tat java.nio.ByteBuffer.allocate(ByteBuffer.java:335)\n"
        "\tat org.apache.kafka.common.network.NetworkReceive.readFrom(NetworkReceive.java:102)"
    )
    log = driver(line("10:00:00", heap, "ERROR"), died("10:00:01"))
    assert diagnosed({DRIVER: log}).cause == "kafka-plain-to-tls"
    assert diagnosed({DRIVER: log.replace("NetworkReceive.readFrom", "X.y")}).cause == "java-heap-full"


def test_the_programs_own_error_is_named_last_and_never_for_sure() -> None:
    own = failing("10:00:00", "User class threw exception: java.lang.NullPointerException")
    alone = diagnosed({DRIVER: driver(own, died("10:00:01"))})
    assert (alone.cause, alone.confidence) == ("own-code-raised", Confidence.LOW)
    full = failing("09:59:59", "failed", "java.io.IOException: No space left on device")
    assert diagnosed({DRIVER: driver(full, own, died("10:00:01"))}).cause == "disk-full"


def test_an_executor_that_ends_while_its_driver_goes_on_is_no_failure() -> None:
    idle = {EXECUTOR: executor(working("09:30:00"), stopped("09:50:00"))}
    assert diagnosed({**idle, DRIVER: driver(working("09:30:00", "10:05:00"))}).outcome is DiagnosisOutcome.FINE
    assert diagnosed({**idle, DRIVER: driver(working("09:30:00", "09:49:59"))}).outcome is DiagnosisOutcome.UNKNOWN


def test_an_error_over_frames_that_a_fact_names_is_unknown_and_not_fine() -> None:
    frame = "\tat org.apache.spark.sql.execution.streaming.HDFSMetadataLog.add(HDFSMetadataLog.scala:1)\n"
    refused = line("10:00:00", "no", "ERROR") + "org.example.NewException: what nobody has seen\n" + frame
    verdict = diagnosed({EXECUTOR: executor(refused)})
    assert verdict.outcome is DiagnosisOutcome.UNKNOWN
    assert "what nobody has seen" in verdict.templates[0].text


def test_a_refused_fetch_differs_from_any_refused_connection() -> None:
    fetch = failing(
        "10:00:00",
        "Exception in task 3.0",
        "org.apache.spark.shuffle.FetchFailedException: Failed to connect to nm7/10.0.0.7:7337",
        "java.net.ConnectException: Connection refused: nm7/10.0.0.7:7337",
    )
    verdict = diagnosed({DRIVER: driver(fetch, died("10:00:01"))})
    assert (verdict.cause, verdict.confidence) == ("shuffle-unreachable", Confidence.LOW)
    assert not verdict.others


def test_a_node_that_yarn_refuses_differs_from_a_lost_one() -> None:
    refused = "Registration of NodeManager failed, Message from ResourceManager: Disallowed NodeManager from nm7"
    words = f"YarnRuntimeException: Recieved SHUTDOWN signal from Resourcemanager, {refused}"
    assert diagnosed({"hadoop-yarn-nodemanager-nm7.log": failing("10:00:00", words)}).cause == "node-refused"


def test_a_driver_tells_why_an_executor_ended_only_after_that() -> None:
    """YARN reports a container that it preempted with the driver's next heartbeat."""
    closed = failing("10:00:01", "failed", "java.io.IOException: Filesystem closed", writer="Executor")
    told = line("10:00:05", "Lost executor 1 on nm7: Container container_1 on host: nm7 was preempted.", "ERROR")
    logs = {DRIVER: driver(told), EXECUTOR: executor(stopped("10:00:00"), closed)}
    assert diagnosed(logs).cause == "preempted"
