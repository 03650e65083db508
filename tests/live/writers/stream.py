"""A structured stream that keeps nothing but its checkpoint: the clock's rows, counted and thrown away."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
query = (
    rows.writeStream.format("noop")
    .option("checkpointLocation", sys.argv[1])
    .trigger(processingTime="500 milliseconds")
    .start()
)
query.awaitTermination()
