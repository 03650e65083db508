"""Commands of HDFS that we print hold each path as one word: a stranger's folder may be called `*` or `x $(id)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What runs on the cluster alone prints none, and the minicluster's paths are its own.
SOURCES = [
    path
    for folder in ("model", "policy", "supervise", "views", "cli", "operators")
    for path in sorted((ROOT / "airflow_kstream" / folder).rglob("*.py"))
]
# A command, up to the end of its quotation or what follows it in a sentence.
COMMAND = re.compile(r"hdfs dfs -[a-zA-Z]+(?P<words>[^`;|,]*)")
QUOTED = re.compile(r"(?:as_word|shlex\.quote|_quoted)\(.*\)")
# Constants of ours, and names that hold words already.
WORDS = {
    "_FOLDER_MODE": "a mode",
    "FolderKind.ORDERS.mode": "a mode",
    "self.permission": "a mode",
    "permission": "a mode",
    "mode": "a mode",
    "user": "a word",
    "place": "a word",
    "folders": "words",
    "paths": "words",
}


def unquoted(source: str) -> Iterator[str]:
    """Yield each expression that stands unquoted in a command which the source prints."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            numbers = iter(range(len(values)))
            parts = (
                str(each.value) if isinstance(each, ast.Constant) else f"<{next(numbers)}>" for each in node.values
            )
            for command in COMMAND.finditer("".join(parts)):
                names = (ast.unparse(values[int(number)]) for number in re.findall(r"<(\d+)>", command["words"]))
                yield from (name for name in names if not QUOTED.fullmatch(name) and name not in WORDS)


def test_each_path_in_a_printed_command_is_one_word() -> None:
    found = [f"{path.relative_to(ROOT)}: {name}" for path in SOURCES for name in unquoted(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('f"`hdfs dfs -rm -r {as_word(path)}` makes way"', []),
        ('f"`hdfs dfs -rm -r {claim.path}` makes way of {user}"', ["claim.path"]),
        ('f"hdfs dfs -chown {shlex.quote(user)} {self.folder}; and {more}"', ["self.folder"]),
    ],
)
def test_a_path_that_is_not_quoted_is_found(source: str, names: list[str]) -> None:
    assert [*unquoted(source)] == names
