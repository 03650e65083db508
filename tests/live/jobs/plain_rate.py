"""The stream of rate.py as somebody wrote it who has never heard of kstream: no helper, no marker, Spark alone."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
folder, pace = (*sys.argv[1:], "2 seconds")[:2]
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().coalesce(1)
query = (
    rows.writeStream.format("parquet")
    .option("path", f"{folder}/table")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime=pace)
    .start()
)
query.awaitTermination()
