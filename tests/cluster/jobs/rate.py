"""A stream without any input but the clock: ten rows a second into the folder that it is given."""

import sys

from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped by --py-files
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
generation = Generation.of(spark)
folder = sys.argv[1]
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().coalesce(1)
query = (
    rows.writeStream.format("parquet")
    .option("path", f"{folder}/table")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
)
generation.await_termination(query)
