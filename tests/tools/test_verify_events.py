"""The checker itself: it must fail on every way in which a table can differ from its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_kstream.demo.jobs.verify_events import ROW_SCHEMA, Findings, audit, lines_of, rows_of_lines

CONTENT = b"first\n\nthird line\nunfinished"
LINES = [("nn1", 0, 5), ("nn1", 6, 0), ("nn1", 7, 10)]
# File, byte offset and length; partition and offset in Kafka.
Row = tuple[str, int, int, int, int]
ROWS: list[Row] = [(*line, 0, offset) for offset, line in enumerate(LINES)]
# The same lines, in records of their own.
SENT_AGAIN: list[Row] = [(*line, 0, offset) for offset, line in enumerate(LINES[:2], len(LINES))]


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "nn1.log"
    path.write_bytes(CONTENT)
    return path


def audited(spark: SparkSession, log_file: Path, rows: list[Row], end: int | None = None) -> Findings:
    """Run the checker on a real table with these rows."""
    table = str(log_file.parent / "table")
    spark.createDataFrame(rows, ROW_SCHEMA).write.parquet(table)
    return audit(spark, spark.read.parquet(table), {"nn1": log_file}, None if end is None else {"nn1": end})


def test_only_complete_lines_of_a_file_count(log_file: Path) -> None:
    assert list(lines_of("nn1", log_file, None)) == LINES


def test_a_table_with_every_line_once_is_equal(spark: SparkSession, log_file: Path) -> None:
    findings = audited(spark, log_file, ROWS)
    assert findings.equal
    assert (findings.expected, findings.found) == (3, 3)


def test_a_table_of_lines_has_what_its_visible_files_have(spark: SparkSession, log_file: Path) -> None:
    """A text may hold tabs and returns, and a hidden file is one that no checkpoint has completed."""
    bucket = log_file.parent / "rows/2026-01-01--00"
    bucket.mkdir(parents=True)
    lines = [f"{file}:{begin}\t{length}\t0\t{offset}\ta\tb\rc\n" for offset, (file, begin, length) in enumerate(LINES)]
    (bucket / "part-0").write_text(lines[0], newline="")
    (bucket / "part-1").write_text("".join(lines[1:]), newline="")
    (bucket / ".part-2.inprogress.7").write_text(lines[2])
    rows = rows_of_lines(spark, str(bucket.parent))
    assert [tuple(row) for row in rows.orderBy("offset").collect()] == ROWS
    assert audit(spark, rows, {"nn1": log_file}, None).equal


def test_lines_that_the_shipper_sent_again_are_rows_of_their_own(spark: SparkSession, log_file: Path) -> None:
    findings = audited(spark, log_file, [*ROWS, *SENT_AGAIN])
    assert findings.equal
    assert (findings.expected, findings.found, findings.repeated) == (3, 5, 2)


def test_only_shipped_lines_are_expected(spark: SparkSession, log_file: Path) -> None:
    assert audited(spark, log_file, ROWS[:2], end=7).equal


@pytest.mark.parametrize(
    ("rows", "wrong", "example"),
    [
        ([*ROWS, ROWS[1]], "duplicated", ("nn1", 6)),
        ([ROWS[0], ROWS[2]], "missing", ("nn1", 6)),
        ([*ROWS, ("nn1", 3, 1, 0, 3)], "unexpected", ("nn1", 3)),
        ([*ROWS, ("nn2", 0, 1, 0, 3)], "unexpected", ("nn2", 0)),
        ([*ROWS[:2], ("nn1", 7, 9, 0, 2)], "altered", ("nn1", 7)),
        ([*ROWS, ("nn1", 7, 9, 0, 3)], "altered", ("nn1", 7)),
        ([*ROWS, *SENT_AGAIN, SENT_AGAIN[1]], "duplicated", ("nn1", 6)),
        ([], "missing", ("nn1", 0)),
    ],
    ids=[
        "a planted duplicate",
        "a planted gap",
        "a row from nowhere",
        "another file",
        "a torn line",
        "a torn line that was sent again",
        "a duplicate of a line that was sent again",
        "an empty table",
    ],
)
def test_a_table_that_differs_is_not_equal(
    spark: SparkSession, log_file: Path, rows: list[Row], wrong: str, example: tuple[str, int]
) -> None:
    findings = audited(spark, log_file, rows)
    assert not findings.equal
    assert [name for name in ("missing", "duplicated", "altered", "unexpected") if getattr(findings, name)] == [wrong]
    first = findings.examples[wrong][0]
    assert (first["file"], first["byte_offset"]) == example
