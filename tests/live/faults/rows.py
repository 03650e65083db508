"""The rows of a stream's table against what its source produced.

Spark's source is its clock (`rate`): until its n-th second it produces 0, 1, 2 ... 10 n - 1, and the checkpoint's last
committed offset says how many seconds were read. The table is Spark's own file sink: what its log lists is in it.

Flink's source counts from 0, and its file sink's table is what is not hidden: each row below the highest one was
produced.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster

ROWS_A_SECOND = 10
_LOG = "_spark_metadata"


@dataclass(frozen=True)
class Rows:
    """How many rows the source produced, and how many of these the table lacks or has more than once."""

    produced: int
    lost: int
    doubled: int

    @classmethod
    def counted(cls, produced: int, values: list[int]) -> Rows:
        """Compare the table's values with those that were produced; any other value is a doubled one."""
        found = Counter(values)
        expected = range(produced)
        doubled = sum(times - (value in expected) for value, times in found.items())
        return cls(produced, sum(value not in found for value in expected), doubled)


def rows_of(minicluster: Minicluster, hdfs: Hdfs, folder: str, local: Path) -> Rows:
    """Count the rows of all batches up to the last committed one; the stream may go on meanwhile.

    `local` keeps a copy of the table for the next count: a stream that ran for long has thousands of files.
    """
    last = hdfs.checkpoint(f"{folder}/checkpoint").position.commit
    seconds = int(hdfs.read(f"{folder}/checkpoint/offsets/{last}").splitlines()[-1])
    for part in ("table", f"table/{_LOG}"):
        copy_new(minicluster, hdfs, f"{folder}/{part}", local / part)
    return Rows.counted(seconds * ROWS_A_SECOND, values_until(last, local / "table"))


def copy_new(minicluster: Minicluster, hdfs: Hdfs, source: str, local: Path) -> None:
    """Make a folder hold what the source holds; what it has already is not copied again."""
    local.mkdir(parents=True, exist_ok=True)
    lengths = {status.name: status.length for status in hdfs.list(source) if not status.is_folder}
    for file in [file for file in local.iterdir() if file.is_file()]:
        if lengths.get(file.name) != file.stat().st_size:
            file.unlink()
    missing = [f"{source}/{name}" for name in lengths if name[0] not in "._" and not (local / name).exists()]
    if missing:
        # Its exit code is 1 if a file vanished since its listing; the count fails if that one matters.
        minicluster.hdfs("dfs", "-get", "-t", "4", *missing, str(local), as_="streamer")


def values_until(batch: int, table: Path) -> list[int]:
    """Return the column `value` of every file that the table's log lists up to this batch, file by file."""
    return [value for file in listed_until(batch, table / _LOG) for value in _values(table / file)]


def listed_until(batch: int, log: Path) -> list[str]:
    """Return the names of the files. Every tenth entry is compacted: it repeats all earlier ones."""
    entries = {int(entry.name.partition(".")[0]): entry for entry in log.iterdir() if entry.name[0].isdigit()}
    # The compacted entry stands beside or in place of the plain one of its batch.
    compacted = {int(entry.name.partition(".")[0]): entry for entry in log.glob("*.compact")}
    entries |= compacted
    first = max((number for number in compacted if number <= batch), default=0)
    lines = [line for number in range(first, batch + 1) for line in _lines(entries[number])]
    return [Path(unquote(urlsplit(line["path"]).path)).name for line in lines if line["action"] == "add"]


def _lines(entry: Path) -> list[dict[str, str]]:
    _version, *lines = entry.read_text().splitlines()
    return [json.loads(line) for line in lines]


def _values(file: Path) -> list[int]:
    # Here, because every run of tests imports this module, and most need no Parquet.
    import pyarrow.parquet as parquet  # type: ignore[import-untyped]

    values: list[int] = parquet.read_table(file, columns=["value"]).column("value").to_pylist()
    return values


def counted_rows(minicluster: Minicluster, hdfs: Hdfs, folder: str, local: Path) -> Rows:
    """Count the rows that Flink's file sink has committed; the stream may go on meanwhile. `local` as in `rows_of`."""
    # From the newest hour on: what is committed meanwhile can't be missing before what is counted.
    for bucket in sorted((status.name for status in hdfs.list(folder) if status.is_folder), reverse=True):
        copy_new(minicluster, hdfs, f"{folder}/{bucket}", local / bucket)
    values = [int(line) for file in local.glob("*/part-*") for line in file.read_text().split()]
    return Rows.counted(max(values, default=-1) + 1, values)
