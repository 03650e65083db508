"""Two queries in one application, each of ten rows a second into a folder of its own below the first argument."""

import sys

from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped by --py-files
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
generation = Generation.of(spark)
queries = [
    spark.readStream.format("rate")
    .option("rowsPerSecond", 10)
    .load()
    .coalesce(1)
    .writeStream.format("parquet")
    .option("path", f"{sys.argv[1]}/{name}/table")
    .option("checkpointLocation", f"{sys.argv[1]}/{name}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
    for name in ("one", "two")
]
generation.await_termination(*queries)
