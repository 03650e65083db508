"""Checks a table of `cluster_events` against the files whose lines it should hold: each record once, and nothing else.

A line that the shipper sent again is two records in Kafka, and rightly two rows. What counts against the stream is a
record in two rows: rows that say the same partition and offset.

    python verify_events.py --table hdfs://ns/table --file nn1=/logs/nn1.log --ends ends.json

With `--lines` in place of `--table`, the table is what `jobs/flink/Rows.java` writes: files of lines.

Prints one JSON object and exits 0 only if table and files are equal. `--ends` is what the shipper prints at its end:
file → the byte up to which it was shipped; without it the whole files count. The table is read through Spark and so
by its `_spark_metadata`; the files are read by plain Python, which shares no code with the shipper.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

LINE_SCHEMA = "file string, byte_offset long, length int"
ROW_SCHEMA = f"{LINE_SCHEMA}, partition int, offset long"
_EXAMPLES = 3
# Each is a condition on one (file, byte offset) of the outer join; the columns without `expected` are the table's.
_WRONG = {
    "missing": "rows IS NULL",
    "duplicated": "rows > records",
    "altered": "shortest <> expected_length OR longest <> expected_length",
    "unexpected": "expected_length IS NULL",
}


@dataclass(frozen=True)
class Findings:
    """Lines of the files (`expected`), rows of the table (`found`), and how many (file, byte offset) are wrong.

    `missing`: in no row; `duplicated`: one record in several rows; `altered`: in one whose length differs;
    `unexpected`: rows of no such line. `repeated`: records of lines that had come before. `examples`: a few of each.
    """

    expected: int
    found: int
    repeated: int
    missing: int
    duplicated: int
    altered: int
    unexpected: int
    examples: dict[str, list[dict[str, Any]]]

    @property
    def equal(self) -> bool:
        wrong = self.missing or self.duplicated or self.altered or self.unexpected
        return self.expected == self.found - self.repeated and not wrong


def compare(lines: DataFrame, rows: DataFrame) -> Findings:
    """Compare lines, of LINE_SCHEMA and distinct by nature, and rows, with the columns of ROW_SCHEMA."""
    key = ["file", "byte_offset"]
    counted = rows.groupBy(*key).agg(
        F.count("*").alias("rows"),
        F.count_distinct("partition", "offset").alias("records"),
        F.min("length").alias("shortest"),
        F.max("length").alias("longest"),
    )
    joined = lines.withColumnRenamed("length", "expected_length").join(counted, key, "full_outer").cache()
    sums = [F.count_if(F.expr(condition)).alias(name) for name, condition in _WRONG.items()]
    expected, found = F.count("expected_length").alias("expected"), F.coalesce(F.sum("rows"), F.lit(0)).alias("found")
    repeated = F.coalesce(F.sum(F.col("records") - 1), F.lit(0)).alias("repeated")
    totals = joined.agg(expected, found, repeated, *sums).first()
    assert totals is not None
    examples = {name: _examples(joined.where(condition)) for name, condition in _WRONG.items() if totals[name]}
    joined.unpersist()
    return Findings(**totals.asDict(), examples=examples)


def _examples(faulty: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in faulty.orderBy("file", "byte_offset").limit(_EXAMPLES).collect()]


def lines_of(name: str, path: Path, end: int | None) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset and length of every complete line that begins before `end`."""
    offset = 0
    with path.open("rb") as stream:
        for line in stream:
            if not line.endswith(b"\n") or (end is not None and offset >= end):
                return
            yield name, offset, len(line) - 1
            offset += len(line)


def rows_of_lines(spark: SparkSession, folder: str) -> DataFrame:
    """Read lines of key, length, partition and offset, each before a tab, and the text; hidden files are incomplete."""
    lines = spark.read.text(folder, lineSep="\n", recursiveFileLookup=True)
    key, length, partition, offset = (F.split("value", "\t", 5)[place] for place in range(4))
    place = F.split(key, ":")
    columns = zip(ROW_SCHEMA.split(", "), (place[0], place[1], length, partition, offset), strict=True)
    return lines.select(*(value.cast(column.split()[1]).alias(column.split()[0]) for column, value in columns))


def audit(spark: SparkSession, rows: DataFrame, files: Mapping[str, Path], ends: Mapping[str, int] | None) -> Findings:
    """Compare a table's rows and files. A file that is missing in `ends` counts as not shipped at all."""
    lines = [
        line
        for name, path in files.items()
        for line in lines_of(name, path, None if ends is None else ends.get(name, 0))
    ]
    return compare(spark.createDataFrame(lines, LINE_SCHEMA), rows)


def _named_path(text: str) -> tuple[str, Path]:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH")
    return name, Path(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    table = parser.add_mutually_exclusive_group(required=True)
    table.add_argument("--table", help="folder of a table of parquet files")
    table.add_argument("--lines", help="folder of a table of lines")
    parser.add_argument("--file", required=True, action="append", type=_named_path, metavar="NAME=PATH")
    parser.add_argument("--ends", type=Path, help="JSON: NAME → the byte up to which it was shipped")
    settings = parser.parse_args()
    ends = json.loads(settings.ends.read_text()) if settings.ends else None
    spark = SparkSession.builder.getOrCreate()
    rows = rows_of_lines(spark, settings.lines) if settings.lines else spark.read.parquet(settings.table)
    findings = audit(spark, rows, dict(settings.file), ends)
    print(json.dumps(asdict(findings)))
    sys.exit(0 if findings.equal else 1)


if __name__ == "__main__":
    main()
