"""A stream without any input but the clock: ten rows a second into a folder, at the pace of its second argument."""

import sys

from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped by --py-files
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
generation = Generation.of(spark)
folder, pace = (*sys.argv[1:], "2 seconds")[:2]
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().coalesce(1)
query = (
    rows.writeStream.format("parquet")
    .option("path", f"{folder}/table")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime=pace)
    .start()
)
generation.await_termination(query)
