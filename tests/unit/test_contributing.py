"""The files and folders that the tables of CONTRIBUTING.md name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("|")]
NAME = re.compile(r"`([^` ]*/[^` ]*|[^` ]+\.(?:py|yaml))`")
BRACES = re.compile(r"\{([^{}]*)\}")


def named(row: str) -> list[str]:
    """Return the paths of a row, in their order, each of a list in braces by itself."""
    return [path for name in NAME.findall(row) for path in expanded(name)]


def expanded(name: str) -> list[str]:
    if not (braces := BRACES.search(name)):
        return [name]
    before, after = name[: braces.start()], name[braces.end() :]
    return [path for word in braces[1].split(",") for path in expanded(f"{before}{word}{after}")]


def missing(row: str) -> Iterator[str]:
    """Yield the paths that don't exist: from the top, in the package, or beside or in what the row names before."""
    folders = [ROOT, ROOT / "airflow_kstream"]
    for path in named(row):
        found = next((each for folder in folders for each in folder.glob(path)), None)
        if found is None:
            yield path
        else:
            folders.append(found if found.is_dir() else found.parent)


def test_what_the_tables_name_exists() -> None:
    assert sum(len(named(row)) for row in ROWS) > 80
    assert [(path, row) for row in ROWS for path in missing(row)] == []


def test_the_table_of_places_is_read_in_one_sitting() -> None:
    _, _, table = (ROOT / "CONTRIBUTING.md").read_text().partition("## To change X, open Y\n\n")
    assert 0 < table.partition("\n\n")[0].count("\n") - 1 <= 40


@pytest.mark.parametrize(
    ("row", "lost"),
    [
        ("`airflow_kstream/model/streams/stream.py`, `stream_policies.py`; `kstream streams status` shows it", []),
        ("`tests/mutants/*.yaml`, `airflow_kstream/{cli,views}/`", []),
        ("`supervise/streams/restart/{stop,halt}.py`", ["supervise/streams/restart/halt.py"]),
        ("`fields.py` of `airflow_kstream/model/streams/stream.py`", ["fields.py"]),
        ("`tests/none/`, `tests/mutants/*.yml`", ["tests/none/", "tests/mutants/*.yml"]),
    ],
)
def test_a_path_is_missed_where_it_is_not(row: str, lost: list[str]) -> None:
    assert [*missing(row)] == lost
