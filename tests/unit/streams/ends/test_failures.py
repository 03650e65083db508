"""The error that a dead generation's driver left; an unreadable one does not stop the watcher."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.streams.contract import claim_file, failed_marker
from airflow_kstream.model.streams.generation import Desired, StreamId
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.supervise.streams.folder.memory import failure_of

STREAM = StreamId("orders", "/kstream")


class Files:
    """An HDFS with `read` alone; None stands for a NameNode that is away."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read(self, path: str) -> str:
        assert path == f"{STREAM.folder}/{failed_marker(2)}"
        if self.text is None:
            raise Unavailable("no active NameNode found")
        return self.text


def failure(text: str | None, *names: str) -> str:
    apps = ((2, cast(Application, None)),)
    observation = Observation(STREAM, datetime(2026, 1, 1, tzinfo=UTC), Desired(), None, frozenset(names), apps, ())
    return failure_of(cast(Hdfs, Files(text)), STREAM, observation)


def test_the_newest_generations_error_is_reported() -> None:
    assert failure('{"query": {}, "error": "quota exceeded"}', failed_marker(2)) == "quota exceeded"


def test_an_older_generations_error_is_not_reported() -> None:
    assert failure('{"error": "quota exceeded"}', failed_marker(1), claim_file(2)) == ""


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"query": {}}'])
def test_a_marker_that_can_not_be_read_tells_nothing(text: str | None) -> None:
    assert failure(text, failed_marker(2)) == ""
