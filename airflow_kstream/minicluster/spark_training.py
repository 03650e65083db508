"""A job that loads the classes of a typical stream on YARN, to be archived: `spark_training.py CHECKPOINT_FOLDER`."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

# What a local job has no use for.
_OF_A_CLUSTER = (
    "org.apache.spark.deploy.yarn.Client",
    "org.apache.spark.deploy.yarn.ApplicationMaster",
    "org.apache.spark.deploy.yarn.YarnAllocator",
    "org.apache.spark.deploy.yarn.YarnClusterApplication",
    "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend",
    "org.apache.spark.scheduler.cluster.YarnClusterSchedulerBackend",
    "org.apache.spark.deploy.security.HadoopDelegationTokenManager",
    "org.apache.spark.deploy.security.HadoopFSDelegationTokenProvider",
    "org.apache.hadoop.hdfs.DistributedFileSystem",
    "org.apache.hadoop.hdfs.DFSClient",
    "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
    "org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolTranslatorPB",
    "org.apache.hadoop.ipc.Client",
    "org.apache.hadoop.security.SaslRpcClient",
    "org.apache.hadoop.yarn.client.api.impl.YarnClientImpl",
    "org.apache.hadoop.yarn.client.api.impl.AMRMClientImpl",
    "org.apache.hadoop.yarn.client.api.impl.NMClientImpl",
    "org.apache.hadoop.yarn.api.impl.pb.client.ApplicationMasterProtocolPBClientImpl",
    "org.apache.hadoop.yarn.api.impl.pb.client.ApplicationClientProtocolPBClientImpl",
    "org.apache.hadoop.yarn.api.impl.pb.client.ContainerManagementProtocolPBClientImpl",
)


def main(checkpoint: str) -> None:
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    java: Any = spark.sparkContext._jvm
    for name in _OF_A_CLUSTER:
        # A class of another version of Spark or Hadoop; the archive is smaller without it.
        with suppress(Exception):
            java.java.lang.Class.forName(name)
    rows = spark.readStream.format("rate").load().selectExpr("value % 10 AS digit", "timestamp")
    written = rows.groupBy("digit").count().writeStream.format("noop").outputMode("complete")
    query = written.option("checkpointLocation", checkpoint).start()
    while query.exception() is None and len(query.recentProgress) < 3:
        time.sleep(0.1)
    query.stop()
    spark.range(10).write.mode("overwrite").parquet(f"{checkpoint}-table")
    spark.read.parquet(f"{checkpoint}-table").count()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
