"""The error that ended a driver, from logs as Python 3, Spark 4 and Hadoop 3 write them."""

from __future__ import annotations

import time

import pytest

from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.policy.streams.ends.ends import end_of
from airflow_kstream.policy.streams.spark.driver_error import last_error
from tests.simulated.driver_logs import CAPTURED, EXITED, FRAMES, KAFKA, RAISED, STATUS

CHAINED = f"""\
{FRAMES}    column = row["a"]
KeyError: 'a'

The above exception was the direct cause of the following exception:

{FRAMES}    raise orders.Broken(row) from error
orders.Broken: row 17
see the runbook
"""
NO_FRAMES = '  File "/data/container_1/orders.py", line 3\n    def (\n        ^\nSyntaxError: invalid syntax\n'
PY4J = f"""\
{FRAMES}    frame = spark.read.parquet(path)
py4j.protocol.Py4JJavaError: An error occurred while calling o42.parquet.
: java.util.concurrent.ExecutionException: java.net.ConnectException: Call From node1/10.0.0.7 to nn1:8020 failed on \
connection exception: java.net.ConnectException: Connection refused; see http://wiki.apache.org/hadoop/ConnectionRefused
	at org.apache.hadoop.net.NetUtils.wrapException(NetUtils.java:1)
	at py4j.GatewayConnection.run(GatewayConnection.java:108)
Caused by: java.net.ConnectException: Call From node1/10.0.0.7 to nn1:8020 failed on connection: Connection refused
	... 30 more
Caused by: java.net.ConnectException: Connection refused
	... 40 more
"""
TOKEN = """\
26/11/22 22:01:01 ERROR MicroBatchExecution: Query orders terminated with error
org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.security.token.SecretManager$InvalidToken): token \
(HDFS_DELEGATION_TOKEN token 4361 for streamer) can't be found in cache
	at org.apache.hadoop.ipc.Client.getRpcResponse(Client.java:1)
"""
WORKER = """\
26/11/22 22:01:01 ERROR TaskSetManager: Task 0 in stage 3.0 failed 4 times; aborting job
26/11/22 22:01:01 ERROR MicroBatchExecution: Query orders terminated with error
org.apache.spark.SparkException: Job aborted due to stage failure
	at org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/data/container_2/pyspark.zip/pyspark/worker.py", line 1, in main
    process()
ZeroDivisionError: division by zero

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
"""
THREAD = """\
Exception in thread "main" org.acme.Broken$RowException: row 4
	at org.acme.Main.main(Main.scala:3)
"""
_TIMED_OUT = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: describe"
# Name -> stdout, stderr, the last line that counts, its kind, and the server that it calls silent.
LOGS = {
    "an error of Python": (RAISED, EXITED, "ValueError: batch 7 has too few rows: 12", EndKind.CODE, ""),
    "Spark's log does not explain it": (RAISED, KAFKA, "ValueError: batch 7 has too few rows: 12", EndKind.CODE, ""),
    "the last of a chain": (CHAINED, EXITED, "orders.Broken: row 17", EndKind.CODE, ""),
    "no traceback": (NO_FRAMES, EXITED, "SyntaxError: invalid syntax", EndKind.CODE, ""),
    "a query's, with its cause": (
        CAPTURED,
        KAFKA + EXITED,
        f"Caused by: {_TIMED_OUT}",
        EndKind.INFRASTRUCTURE,
        "Kafka",
    ),
    "Java's through py4j": (
        PY4J,
        EXITED,
        "Caused by: java.net.ConnectException: Call From node1/10.0.0.7 to nn1:8020 failed on connection: "
        "Connection refused",
        EndKind.INFRASTRUCTURE,
        "HDFS",
    ),
    "an exit without a traceback": ("bye\n", KAFKA + EXITED, _TIMED_OUT, EndKind.INFRASTRUCTURE, "Kafka"),
    "a dead token": (
        "",
        TOKEN + EXITED,
        "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.security.token.SecretManager$InvalidToken): token "
        "(HDFS_DELEGATION_TOKEN token 4361 for streamer) can't be found in cache",
        EndKind.CREDENTIALS,
        "",
    ),
    "an error in a Python worker": ("", WORKER + EXITED, "ZeroDivisionError: division by zero", EndKind.CODE, ""),
    "a job for the JVM": ("", THREAD, "org.acme.Broken$RowException: row 4", EndKind.CODE, ""),
    "none": ("bye\n", EXITED, "", EndKind.CODE, ""),
    "nothing": ("", "", "", EndKind.CODE, ""),
}


@pytest.mark.parametrize(("stdout", "stderr", "words", "kind", "silent"), LOGS.values(), ids=LOGS)
def test_the_log_of_a_driver_names_what_ended_it(
    stdout: str, stderr: str, words: str, kind: EndKind, silent: str
) -> None:
    error = last_error(stdout, stderr)
    assert error.splitlines()[-1:] == ([words] if words else [])
    end = end_of(STATUS, error)
    assert (end.kind, end.silent) == (kind, silent)


def test_two_runs_of_one_failure_have_one_fingerprint_and_other_failures_another() -> None:
    again = RAISED.replace("batch 7", "batch 81").replace("12", "3")
    prints = {end_of(STATUS, last_error(stdout, EXITED)).fingerprint for stdout in (RAISED, again)}
    assert prints == {"ValueError: batch # has too few rows: #"}
    assert end_of(STATUS, last_error(CHAINED, EXITED)).fingerprint not in prints


def test_a_query_error_keeps_its_own_words_above_the_cause() -> None:
    assert last_error(CAPTURED, KAFKA).startswith("pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM")


def test_a_book_in_a_log_is_a_short_error_and_takes_no_time() -> None:
    for text in ("a." * 10**5, "Caused by: " * 10**4, '  File "a"\nX: ' * 10**4, "Traceback\n" * 10**4, "1 " * 10**5):
        began = time.process_time()
        assert len(last_error(text, text)) < 1000
        assert time.process_time() - began < 2
