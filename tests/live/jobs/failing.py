"""A stream that knows nothing of its supervisor, and ends after its first batch of an error that it is told."""

import sys

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
folder, failure = sys.argv[1], sys.argv[2]


def write(rows: DataFrame, batch: int) -> None:
    if batch and failure == "its sink is away":
        rows.write.parquet("hdfs://127.0.0.1:1/table")
    rows.write.mode("append").parquet(f"{folder}/table")


rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().coalesce(1)
query = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoint").start()
if failure == "its sink is away":
    query.awaitTermination()
while not query.recentProgress:
    query.awaitTermination(1)
raise ValueError(f"batch 17 of {folder} has too few rows: password=hunter2")
