"""Flink's name stays in Flink's rooms, as Spark's does in Spark's."""

from __future__ import annotations

import ast
import re

from tests.unit.streams.spark.test_sparks_rooms import PACKAGE, ROOMS, texts

FLINK = re.compile(r"flink|(job|task) ?manager", re.IGNORECASE)
# What a BucketingSink leaves beside an open file is any client's, and no stream's.
OF_FILES = {"views/leases.py": {"Flink's companion file declares "}}


def test_no_text_outside_flinks_rooms_names_flink() -> None:
    files = [path for room in (*ROOMS, "policy/leases", "states") for path in (PACKAGE / room).rglob("*.py")]
    others = {path.relative_to(PACKAGE).as_posix(): path for path in files if path.parent.name != "flink"}
    assert OF_FILES.keys() <= others.keys()
    found = [
        f"{name}:{line}: {text}: let the engine bring these words"
        for name, path in others.items()
        for line, text in texts(ast.parse(path.read_text()))
        if FLINK.search(text) and text not in OF_FILES.get(name, ())
    ]
    assert found == []


def test_a_text_that_names_one_of_its_processes_is_found() -> None:
    (_, text), *_ = texts(ast.parse('return_ = f"{count} TaskManagers"'))
    assert FLINK.search(text)
