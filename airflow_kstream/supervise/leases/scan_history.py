"""The history of open files, kept in `state_dir` between runs: one file for each principal that scans."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.identity import Identity, split_principal
from airflow_kstream.model.open_file import FileHistory

_VERSION: Literal[2] = 2
_FILES: TypeAdapter[list[FileHistory]] = TypeAdapter(list[FileHistory])
_WATCHED_IN_1 = TypeAdapter(list[dict[str, Any]])


@dataclass(frozen=True)
class _Written:
    """The file's content. Version 1 was the list alone, without a number."""

    version: Literal[2]
    files: list[FileHistory]


_WRITTEN: TypeAdapter[_Written] = TypeAdapter(_Written)


def lease_folder(state_dir: str, identity: Identity) -> str:
    """Return the folder of this identity's history and journal. It has its own: another writer could mislead it."""
    who = identity.do_as or "-".join(part for part in split_principal(identity.principal)[:2] if part)
    return f"{state_dir.rstrip('/')}/leases-{who}"


class ScanHistory:
    """The memory of one identity. The newest writer wins: a lost entry only costs another scan."""

    def __init__(self, hdfs: Hdfs, folder: str) -> None:
        self._hdfs = hdfs
        self._folder = folder
        self._path = f"{folder}/sightings.json"

    def load(self) -> dict[str, FileHistory]:
        """Return the history by path. Unreadable content is dropped: that costs two more scans and never a file."""
        try:
            return {history.file.path: history for history in _read(self._hdfs.read(self._path))}
        except (NotFound, InvalidInput, ValueError):
            return {}

    def save(self, history: Iterable[FileHistory]) -> None:
        draft = f"{self._folder}/.sightings-{uuid.uuid4().hex}"
        self._hdfs.make_folder(self._folder, "750")
        content = _WRITTEN.dump_json(_Written(_VERSION, list(history)), by_alias=True)
        self._hdfs.write(draft, content, permission="640")
        self._hdfs.rename_over(draft, self._path)


def _read(text: str) -> list[FileHistory]:
    """Parse the file. Raises ValueError: when it is of a newer version, or damaged."""
    if not text.lstrip().startswith("["):
        return _WRITTEN.validate_json(text).files
    known = _WATCHED_IN_1.validate_json(text)
    return _FILES.validate_python([{**file, "last_growth": file.get("grew")} for file in known], strict=False)
