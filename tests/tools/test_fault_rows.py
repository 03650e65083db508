"""How the fault suite counts rows and generations: a row that is lost or doubled, and an overlap, are seen."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from tests.live.faults.rows import Rows, copy_new, listed_until


@pytest.mark.parametrize(
    ("values", "lost", "doubled"),
    [
        ([2, 0, 1], 0, 0),
        ([0, 2], 1, 0),
        ([0, 1, 1, 2], 0, 1),
        ([0, 1, 2, 7], 0, 1),
        ([1, 1, 1], 2, 2),
    ],
)
def test_rows_are_compared_with_what_the_source_produced(values: list[int], lost: int, doubled: int) -> None:
    assert Rows.counted(3, values) == Rows(3, lost, doubled)


def test_a_table_has_the_files_that_its_log_lists_up_to_a_batch(tmp_path: Path) -> None:
    """The tenth entry is compacted; a file that no entry lists was left by a writer that did not commit it."""
    for batch in range(9):
        write(tmp_path / str(batch), batch)
    write(tmp_path / "9.compact", *range(10))
    write(tmp_path / "10", 10)
    write(tmp_path / "11", 11)
    (tmp_path / ".12.crc").write_text("")
    assert listed_until(2, tmp_path) == ["part-0", "part-1", "part-2"]
    assert listed_until(10, tmp_path) == [f"part-{number}" for number in range(11)]


def write(entry: Path, *numbers: int) -> None:
    lines = [{"path": f"hdfs://c/table/part-{number}", "action": "add"} for number in numbers]
    entry.write_text("\n".join(["v1", *map(json.dumps, lines)]))


class LocalHdfs:
    """A folder in place of HDFS, and of the command that copies from it: the copy is what is tested."""

    def __init__(self) -> None:
        self.copied: list[str] = []

    def list(self, path: str) -> tuple[FileStatus, ...]:
        files = [file for file in Path(path).iterdir() if file.is_file()]
        return tuple(FileStatus(file.name, file.stat().st_size, datetime.now(UTC), is_folder=False) for file in files)

    def hdfs(self, *words: str, as_: str) -> None:
        *files, target = words[4:]
        for file in files:
            self.copied.append(Path(file).name)
            shutil.copy(file, target)


def test_a_copy_of_a_table_follows_it_and_takes_only_what_is_new(tmp_path: Path) -> None:
    """A file that vanished or was written again must not be counted as it was: its rows would seem to be there."""
    source, local, hdfs = tmp_path / "source", tmp_path / "local", LocalHdfs()
    source.mkdir()
    for name in ("part-0", "part-1", "part-2", "_draft", ".part-3.crc"):
        (source / name).write_text(name)
    copy_new(cast("Any", hdfs), cast("Any", hdfs), str(source), local)
    (source / "part-0").unlink()
    (source / "part-1").write_text("written again")
    (source / "part-3").write_text("new")
    hdfs.copied.clear()
    copy_new(cast("Any", hdfs), cast("Any", hdfs), str(source), local)
    assert sorted(hdfs.copied) == ["part-1", "part-3"]
    assert {file.name: file.read_text() for file in local.iterdir()} == {
        "part-1": "written again",
        "part-2": "part-2",
        "part-3": "new",
    }
