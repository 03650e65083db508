"""Spark's name stays in Spark's rooms: what supervises streams takes such words from the stream's engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[4] / "airflow_kstream"
ROOMS = ("supervise/streams", "policy/streams", "triggers", "operators", "views")
SPARK = re.compile(r"spark|structured ?streaming", re.IGNORECASE)
# Names of arguments that people type, of what is Spark's and no stream's: logs spread over executors, and Spark's RPC.
TYPED = {"operators/triage.py": {"spark"}, "operators/token_push.py": {"spark_submit"}}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the string literals, but those that are statements of their own: a docstring is shown nowhere."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def spoken(source: str) -> list[tuple[int, str]]:
    return [(line, text) for line, text in texts(ast.parse(source)) if SPARK.search(text)]


def test_no_text_outside_sparks_rooms_names_spark() -> None:
    files = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    others = {path.relative_to(PACKAGE).as_posix(): path for path in files if path.parent.name != "spark"}
    assert TYPED.keys() <= others.keys()
    found = [
        f"{name}:{line}: {text}: let the engine bring these words"
        for name, path in others.items()
        for line, text in spoken(path.read_text())
        if text not in TYPED.get(name, ())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ['x = "spark-submit"', 'return f"{x} of PySpark"', 're.compile("org.apache.spark.")', 'x = "Structured Streaming"'],
)
def test_a_text_that_names_it_is_found(line: str) -> None:
    assert spoken(f"def told():\n    {line}")


def test_a_docstring_may_explain_what_spark_does() -> None:
    assert spoken('def told():\n    """Spark does so (SPARK-17340)."""\n    return 1') == []
