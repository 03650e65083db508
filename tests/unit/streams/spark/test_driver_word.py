"""The driver's word that it stopped is one about all its queries.

The session is simulated: what is tested is which queries the helper looks at, and a real one costs a JVM for each case.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from airflow_kstream.jobs.kstream_driver import Generation, StateFolder, stop_marker, stopped_marker


@dataclass
class Query:
    """A query between two batches."""

    id: str
    active: list[Query]
    name: str = "q"
    lastProgress: None = None
    isActive: bool = True
    status: dict[str, bool] = field(default_factory=lambda: {"isTriggerActive": False})

    def stop(self) -> None:
        self.isActive = False
        self.active.remove(self)

    def awaitTermination(self, seconds: float) -> bool:
        return not self.isActive


class Folder:
    def __init__(self) -> None:
        self.files: dict[str, Any] = {stop_marker(1): {"generation": 1}}
        self.errors: list[Exception] = []

    def names(self, matters: Callable[[str], bool]) -> set[str]:
        if self.errors:
            raise self.errors.pop()
        return {*filter(matters, self.files)}

    def read(self, name: str, longest: int) -> bytes:
        return json.dumps(self.files[name]).encode()

    def put(self, name: str, content: dict[str, Any]) -> None:
        self.files[name] = content


def job(queries: int) -> tuple[Generation, list[Query], Folder]:
    active: list[Query] = []
    active += [Query(f"query-{number}", active) for number in range(queries)]
    folder = Folder()
    session = SimpleNamespace(streams=SimpleNamespace(active=active))
    return Generation("orders", 1, cast(StateFolder, folder), "application_1_0001", session), list(active), folder


def test_when_all_queries_are_stopped_the_driver_says_so() -> None:
    generation, queries, folder = job(2)
    generation.await_termination(*queries)
    assert stopped_marker(1) in folder.files


def test_while_a_query_runs_that_it_was_not_given_the_driver_does_not_say_so() -> None:
    generation, queries, folder = job(2)
    generation.await_termination(queries[0])
    assert not queries[0].isActive
    assert stopped_marker(1) not in folder.files


def test_a_folder_that_cannot_be_read_for_a_while_ends_no_query() -> None:
    """Whatever fails: an error of the JVM comes as Py4J's, which is no OSError."""
    generation, queries, folder = job(1)
    folder.errors = [OSError("reset"), Exception("org.apache.hadoop.ipc.StandbyException"), ValueError("no answer")]
    generation.await_termination(*queries)
    assert folder.errors == []
    assert stopped_marker(1) in folder.files, "it went on until it could read its stop marker"
