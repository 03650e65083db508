"""A stream whose only input is the clock: FOLDER [BATCHES]. After so many batches, the next one hangs for ever."""

import sys
import threading

from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped by --py-files
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
generation = Generation.of(spark)
folder, *more = sys.argv[1:]
hangs_after = int(more[0]) if more else None


def keep(batch: DataFrame, number: int) -> None:
    if hangs_after is not None and number >= hangs_after:
        threading.Event().wait()
    batch.write.mode("overwrite").parquet(f"{folder}/table/batch={number}")


query = (
    spark.readStream.format("rate")
    .option("rowsPerSecond", 10)
    .load()
    .coalesce(1)
    .writeStream.foreachBatch(keep)
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="4 seconds")
    .start()
)
generation.await_termination(query)
