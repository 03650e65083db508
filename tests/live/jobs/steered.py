"""A stream whose batches work as a file says at their begin: FOLDER FILE. The file holds a word and seconds.

`usual`: at once. `slow`: twenty tasks, one after the other, of so many seconds in all. `skewed`: one task that reads a
table for so many seconds. `waits`: one task that waits for a lock as long as the file says so.
"""

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped by --py-files
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.getOrCreate()
generation = Generation.of(spark)
folder, steering = sys.argv[1], Path(sys.argv[2])
_TASKS, _ROWS = 20, 200_000


def taking(seconds: float) -> Any:
    def work(rows: Iterable[Any]) -> Iterator[int]:
        for _ in rows:
            time.sleep(seconds)
            yield 1

    return work


def keep(batch: DataFrame, number: int) -> None:
    kind, _, seconds = steering.read_text().partition(" ")
    if kind == "slow":
        batch.sparkSession.sparkContext.range(_TASKS, numSlices=_TASKS).mapPartitions(
            taking(float(seconds) / _TASKS)
        ).count()
    elif kind == "skewed":
        batch.sparkSession.read.parquet(f"{folder}/big").coalesce(1).rdd.mapPartitions(
            taking(float(seconds) / _ROWS)
        ).count()
    elif kind == "waits":
        while steering.read_text().startswith("waits"):
            threading.Event().wait(1)
    batch.write.mode("overwrite").parquet(f"{folder}/table/batch={number}")


spark.range(_ROWS).selectExpr("id", "repeat('x', 200) AS padding").coalesce(1).write.mode("overwrite").parquet(
    f"{folder}/big"
)
query = (
    spark.readStream.format("rate")
    .option("rowsPerSecond", 10)
    .load()
    .coalesce(1)
    .writeStream.foreachBatch(keep)
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
)
generation.await_termination(query)
