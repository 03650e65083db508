"""The driver's helper, with real queries and a real folder: the local file system is one of Hadoop's too."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.jobs.kstream_driver import ContractError, Generation, Superseded, newest_claim
from airflow_kstream.model.streams.contract import (
    claim_file,
    failed_marker,
    started_marker,
    stop_marker,
    stopped_marker,
)
from airflow_kstream.policy.streams.spark.spark_stream import contract_conf

StartQuery = Callable[[], StreamingQuery]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The stream's folder, in which generation 3 was claimed."""
    folder = tmp_path / "state" / "events-0badcafe"
    folder.mkdir(parents=True)
    for generation in (2, 3):
        say(folder / claim_file(generation))
    return folder


@pytest.fixture
def supervised(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    """A session submitted as generation 3."""
    conf = contract_conf("events-0badcafe", 3, folder.as_uri())
    for key, value in conf.items():
        spark.conf.set(key, value)
    yield spark
    for key in conf:
        spark.conf.unset(key)


@pytest.fixture
def start_endless(spark: SparkSession, tmp_path: Path) -> Iterator[StartQuery]:
    """Start a query that would run for ever, and wait for its first batch."""
    started: list[StreamingQuery] = []

    def start() -> StreamingQuery:
        checkpoint = str(tmp_path / f"checkpoint-{len(started)}")
        source = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        writer = source.writeStream.format("noop").option("checkpointLocation", checkpoint)
        started.append(writer.trigger(processingTime="100 milliseconds").start())
        eventually(lambda: started[-1].lastProgress is not None)
        return started[-1]

    yield start
    for query in started:
        query.stop()


def eventually(condition: Callable[[], bool]) -> None:
    Retrying(retry=retry_if_result(lambda met: not met), wait=wait_fixed(0.02), stop=stop_after_delay(120))(condition)


def say(file: Path) -> None:
    """Write a claim or a stop marker: it says the generation in its name."""
    file.write_text(json.dumps({"generation": int(file.name.rpartition("-")[2])}))


def last_commit(tmp_path: Path, query: int) -> int:
    return max(int(path.name) for path in (tmp_path / f"checkpoint-{query}" / "commits").glob("[0-9]*"))


def quick(generation: Generation) -> Generation:
    generation.poll_seconds = 0.05
    return generation


def finite(spark: SparkSession, tmp_path: Path, failing: bool = False) -> StreamingQuery:
    """A query that ends by itself after the three rows that there are."""
    spark.range(3).write.parquet(str(tmp_path / "three"))
    source = spark.readStream.schema("id long").parquet(str(tmp_path / "three"))
    rows = source.select(F.raise_error(F.lit("broken on purpose"))) if failing else source
    checkpoint = str(tmp_path / "checkpoint")
    return rows.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def test_the_newest_claim_is_found_among_everything_else() -> None:
    assert newest_claim({"gen-000007", "gen-000012", "stop-000099", ".gen-000044.tmp", "desired"}) == 12
    assert newest_claim(set()) == 0


def test_without_the_contract_it_waits_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    query = finite(spark, tmp_path)
    quick(Generation.of(spark)).await_termination(query)
    assert not query.isActive


def test_what_a_query_dies_of_is_raised_and_told(supervised: SparkSession, folder: Path, tmp_path: Path) -> None:
    generation = quick(Generation.of(supervised))
    with pytest.raises(StreamingQueryException, match="broken on purpose"):
        generation.await_termination(finite(supervised, tmp_path, failing=True))
    assert "broken on purpose" in json.loads((folder / failed_marker(3)).read_text())["error"]


def test_it_says_that_it_started(supervised: SparkSession, folder: Path) -> None:
    Generation.of(supervised)
    report = json.loads((folder / started_marker(3)).read_text())
    assert (report["generation"], report["application"]) == (3, supervised.sparkContext.applicationId)
    assert not list(folder.glob(".*.tmp"))


def test_its_marker_stops_every_query_and_is_answered(
    supervised: SparkSession, folder: Path, start_endless: StartQuery, tmp_path: Path
) -> None:
    queries = [start_endless(), start_endless()]
    say(folder / stop_marker(3))
    quick(Generation.of(supervised)).await_termination(*queries)
    assert [query.isActive for query in queries] == [False, False]
    report = json.loads((folder / stopped_marker(3)).read_text())
    assert [query["id"] for query in report["queries"]] == [query.id for query in queries]
    assert [query["last_batch"] for query in report["queries"]] == [last_commit(tmp_path, 0), last_commit(tmp_path, 1)]


def test_while_a_query_of_another_session_runs_it_gives_no_word_for_all(
    supervised: SparkSession, folder: Path, start_endless: StartQuery, tmp_path: Path
) -> None:
    """Its queries are listed by that session alone, and they write as well."""
    generation, query = quick(Generation.of(supervised)), start_endless()
    source = supervised.newSession().readStream.format("rate").load()
    other = source.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "other")).start()
    say(folder / stop_marker(3))
    generation.await_termination(query)
    assert other.isActive
    assert not (folder / stopped_marker(3)).exists()
    other.stop()
    generation.await_termination(start_endless())
    assert (folder / stopped_marker(3)).exists()


def test_the_marker_of_an_older_generation_means_nothing(
    supervised: SparkSession, folder: Path, tmp_path: Path
) -> None:
    say(folder / stop_marker(2))
    quick(Generation.of(supervised)).await_termination(finite(supervised, tmp_path))
    assert not (folder / stopped_marker(3)).exists()


def test_it_does_not_start_beside_a_newer_generation(supervised: SparkSession, folder: Path) -> None:
    say(folder / claim_file(4))
    with pytest.raises(Superseded, match="generation 4 was claimed, this driver is of 3"):
        Generation.of(supervised)
    assert not (folder / started_marker(3)).exists()


def test_a_newer_claim_ends_it_without_a_word(
    supervised: SparkSession, folder: Path, start_endless: StartQuery
) -> None:
    query, generation = start_endless(), quick(Generation.of(supervised))
    say(folder / claim_file(4))
    say(folder / stop_marker(3))
    with pytest.raises(Superseded):
        generation.await_termination(query)
    assert not query.isActive
    assert not (folder / stopped_marker(3)).exists()


def test_it_goes_on_while_the_folder_can_not_be_read(
    supervised: SparkSession, folder: Path, start_endless: StartQuery, caplog: pytest.LogCaptureFixture
) -> None:
    query, generation = start_endless(), quick(Generation.of(supervised))
    shutil.move(folder, folder.with_name("away"))
    waiting = threading.Thread(target=generation.await_termination, args=[query])
    with caplog.at_level(logging.WARNING, "kstream_driver"):
        waiting.start()
        eventually(lambda: "going on without its supervisor" in caplog.text and query.isActive)
        shutil.move(folder.with_name("away"), folder)
        say(folder / stop_marker(3))
        waiting.join(120)
    assert not query.isActive
    assert (folder / stopped_marker(3)).exists()


def test_a_contract_of_another_version_is_refused(supervised: SparkSession) -> None:
    supervised.conf.set("spark.kstream.contract", "2")
    with pytest.raises(ContractError, match="'2'"):
        Generation.of(supervised)
