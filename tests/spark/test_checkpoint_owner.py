"""Spark works on a checkpoint that holds the record of its owner as it does on any other."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.model.streams.checkpoint_owner import OWNER_FOLDER, owner_file


def start(spark: SparkSession, checkpoint: Path) -> StreamingQuery:
    """Start a query with state, and so with all folders that a checkpoint can have."""
    counts = spark.readStream.format("rate").option("rowsPerSecond", 50).load().groupBy("value").count()
    writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
    return writer.trigger(processingTime="100 milliseconds").start()


def commits(checkpoint: Path) -> int:
    return max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def run_past(spark: SparkSession, checkpoint: Path, batch: int) -> str:
    """Run the query past this batch, stop it, and return its id."""
    query = start(spark, checkpoint)
    try:
        Retrying(retry=retry_if_result(lambda met: not met), wait=wait_fixed(0.05), stop=stop_after_delay(120))(
            lambda: query.exception() is not None or commits(checkpoint) > batch
        )
        assert query.exception() is None
        return str(query.id)
    finally:
        query.stop()


def test_the_owners_record_disturbs_no_query_from_its_first_start(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    record = checkpoint / OWNER_FOLDER / owner_file(1)
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    first = run_past(spark, checkpoint, 0)
    assert run_past(spark, checkpoint, commits(checkpoint)) == first
    assert (checkpoint / "state").is_dir()
    assert record.read_text() == "{}"
