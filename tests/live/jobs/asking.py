"""A stream that checkpoints the rows of each batch, and asks a server before it gives out any: FOLDER HOST:PORT.

Each batch asks twice: when its rows are counted, and when they are computed again for the checkpoint. A second query
runs beside it, and asks nobody.
"""

import socket
import sys
from collections.abc import Iterable, Iterator

from kstream_driver import Generation  # type: ignore[import-not-found]  # shipped by --py-files
from pyspark.sql import DataFrame, Row, SparkSession

spark = SparkSession.builder.getOrCreate()
generation = Generation.of(spark)
folder, server = sys.argv[1:]
spark.sparkContext.setCheckpointDir(f"{folder}/rdds")


def answered(rows: Iterable[Row]) -> Iterator[Row]:
    """Ask, and wait for the answer for as long as it takes: as a client without a timeout."""
    host, _, port = server.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.recv(1)
    yield from rows


def keep(batch: DataFrame, number: int) -> None:
    rows = batch.rdd.mapPartitions(answered)
    rows.checkpoint()
    rows.count()
    batch.write.mode("overwrite").parquet(f"{folder}/table/batch={number}")


(
    spark.readStream.format("rate")
    .load()
    .writeStream.format("noop")
    .option("checkpointLocation", f"{folder}/beside")
    .trigger(processingTime="1 second")
    .start()
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
