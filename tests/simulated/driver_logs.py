"""The lines of a Spark driver with a keytab about its rounds of new tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

DAY = timedelta(days=1)
# As Spark 3.5 and 4.0 print them, on the minicluster and in SPARK-37787.
GOOD = (
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Calculated delay on renewal is {delay}, based on next "
    "renewal {end} and the ratio 0.75, and current time {at}\n"
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Scheduling renewal in 18.0 h.\n"
)
NEVER = (
    "26/11/23 17:01:02 WARN HadoopFSDelegationTokenProvider: Failed to get token from service hadoopfs\n"
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Calculated delay on renewal is 6917527719390187520, based on "
    "next renewal 9223372036854775807 and the ratio 0.75, and current time {at}\n"
    "26/11/23 17:01:02 INFO HadoopDelegationTokenManager: Scheduling renewal in 1921535501304.2 h.\n"
)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def good(at: datetime, interval: timedelta = DAY) -> str:
    delay = interval * 0.75
    return GOOD.format(at=ms(at), end=ms(at + interval), delay=int(delay.total_seconds() * 1000))


def never(at: datetime) -> str:
    return NEVER.format(at=ms(at))


STATUS = "User application exited with status 1"
FRAMES = """\
Traceback (most recent call last):
  File "/data/container_1/orders.py", line 31, in <module>
    main()
    ~~~~^^
  File "/data/container_1/orders.py", line 27, in main
"""
RAISED = f"batch 7: 12 rows\n{FRAMES}    raise ValueError(rows)\nValueError: batch 7 has too few rows: 12\n"
CAPTURED = f"""\
{FRAMES}    query.awaitTermination()
pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query [id = 0a1b, runId = 2c3d] terminated \
with exception: Timed out waiting for a node assignment. Call: describeTopics SQLSTATE: XXKST
=== Streaming Query ===
Identifier: orders [id = 0a1b, runId = 2c3d]
"""
KAFKA = """\
26/11/22 22:00:01 WARN AdminClient: Connection to node -1 (kafka1/10.0.0.9:9092) could not be established.
26/11/22 22:01:01 ERROR MicroBatchExecution: Query [id = 0a1b, runId = 2c3d] terminated with error
java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node
	at java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: describe
"""
EXITED = """\
26/11/22 22:01:02 ERROR ApplicationMaster: User application exited with status 1
org.apache.spark.SparkUserAppException: User application exited with 1
	at org.apache.spark.deploy.PythonRunner$.main(PythonRunner.scala:113)
26/11/22 22:01:02 INFO ApplicationMaster: Final app status: FAILED, exitCode: 1, (reason: User application exited)
26/11/22 22:01:03 WARN TransportChannelHandler: Exception in connection from /10.0.0.8:4711
java.io.IOException: Connection reset by peer
	at java.base/sun.nio.ch.SocketDispatcher.read0(Native Method)
26/11/22 22:01:03 ERROR Utils: Uncaught exception in thread shutdown-hook-0
java.lang.InterruptedException
	at java.base/java.lang.Object.wait(Native Method)
"""
