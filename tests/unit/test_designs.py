"""The designs name files that exist, link pages that exist, and are found from CONTRIBUTING.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "design"
DESIGNS = sorted(FOLDER.glob("*.md"))
# From the top, so that a search for a file finds its designs. Names of files on HDFS stand in blocks of code.
NAME = re.compile(r"`([^` ]*/[^` ]*|[^` ]+\.(?:py|yaml|md))`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def missing(text: str, folder: Path = FOLDER) -> Iterator[str]:
    """Yield the paths that don't exist: those that are named, and those that are linked from a page in `folder`."""
    prose = BLOCK.sub("", text)
    yield from (name for name in NAME.findall(prose) if not (ROOT / name).exists())
    yield from (link for link in LINK.findall(prose) if not (folder / link).exists())


@pytest.mark.parametrize("design", DESIGNS, ids=lambda path: path.stem)
def test_what_a_design_names_exists(design: Path) -> None:
    text = design.read_text()
    assert len(NAME.findall(BLOCK.sub("", text))) > 10
    assert [*missing(text)] == []


def test_each_design_is_linked_where_contributors_begin() -> None:
    linked = re.findall(r"\]\((docs/design/[^)]+)\)", (ROOT / "CONTRIBUTING.md").read_text())
    assert sorted(linked) == [str(design.relative_to(ROOT)) for design in DESIGNS] != []


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("`airflow_kstream/model/streams/contract.py`, `tests/unit/`, `gen-000007` and `stop_n()`", []),
        ("`airflow_kstream/model/streams.py`, `stream.py`", ["airflow_kstream/model/streams.py", "stream.py"]),
        ("[one](horizon.md), [two](../../SECURITY.md), [three](https://example.org/x.md)", []),
        ("[one](horizons.md)", ["horizons.md"]),
        ("```\ndeclared.USER/  `none/of/ours`\n```\n", []),
    ],
)
def test_a_path_is_missed_where_it_is_not(text: str, lost: list[str]) -> None:
    assert [*missing(text)] == lost
