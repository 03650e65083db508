"""The history of open files, kept in `state_dir` between runs: one file for each HDFS user that scans."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.leases.open_file import FileHistory
from airflow_kstream.supervise.clusters.own_folder import make_own_folder
from airflow_kstream.supervise.leases.own_files import OwnFiles

_SIGHTINGS = "sightings.json"
_VERSION: Literal[2] = 2


@dataclass(frozen=True)
class _Written:
    """The file's content."""

    version: Literal[2]
    files: list[FileHistory]


_WRITTEN: TypeAdapter[_Written] = TypeAdapter(_Written)


class ScanHistory:
    """The memory of one HDFS user. The newest writer wins: a lost entry only costs another scan.

    What somebody else wrote in its place is as if it were not there; `tell` hears of it.
    """

    def __init__(self, hdfs: Hdfs, folder: str, tell: Callable[[str], None] = lambda line: None) -> None:
        self._hdfs = hdfs
        self._files = OwnFiles(hdfs, tell)
        self._folder = folder
        self._path = f"{folder}/{_SIGHTINGS}"

    def load(self) -> dict[str, FileHistory]:
        """Return the history by path. Unreadable content is dropped: that costs two more scans and never a file."""
        if all(file.name != _SIGHTINGS for file in self._files.list(self._folder)):
            return {}
        try:
            written = _WRITTEN.validate_json(self._files.text(self._path))
        except (NotFound, ValueError):
            return {}
        return {history.file.path: history for history in written.files}

    def save(self, history: Iterable[FileHistory]) -> None:
        draft = f"{self._folder}/.sightings-{uuid.uuid4().hex}"
        make_own_folder(self._hdfs, self._folder, "750")
        content = _WRITTEN.dump_json(_Written(_VERSION, list(history)), by_alias=True)
        self._hdfs.write(draft, content, permission="640")
        self._hdfs.rename_over(draft, self._path)
