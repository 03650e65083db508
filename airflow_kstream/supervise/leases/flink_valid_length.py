"""The valid length of a part file, in bytes, that a Flink bucketing sink left beside it."""

from __future__ import annotations

import re

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import KstreamError

# BucketingSink's defaults: "_part-0-6.in-progress" and "_part-0-6.pending" become "part-0-6", whose companion is
# "_part-0-6.valid-length".
_OPEN_NAME = re.compile(r"_(?P<part>.+)\.(?:in-progress|pending)")
_PREFIX = "_"
# DataOutput.writeUTF wrote it: two bytes with its length, then the decimal number.
_CONTENT = re.compile(r"(?:[\0-\x1f]{2})?(?P<length>\d+)\s*", re.DOTALL)


def companion_of(path: str) -> str:
    """Return the path of this part file's companion, regardless of the part file's stage."""
    folder, _, name = path.rpartition("/")
    match = _OPEN_NAME.fullmatch(name)
    return f"{folder}/{_PREFIX}{match['part'] if match else name}.valid-length"


class ValidLengths:
    """The companions of many files. What may be one is listed once in a folder, and only what exists is read."""

    def __init__(self, hdfs: Hdfs) -> None:
        self._hdfs = hdfs
        self._names: dict[str, frozenset[str]] = {}

    def of(self, path: str) -> int | None:
        """Return how many bytes of the file are valid; None if it has no readable companion."""
        folder, _, name = companion_of(path).rpartition("/")
        if name not in self._listed(folder):
            return None
        try:
            match = _CONTENT.fullmatch(self._hdfs.read(f"{folder}/{name}"))
        except KstreamError:
            return None
        return int(match["length"]) if match else None

    def _listed(self, folder: str) -> frozenset[str]:
        if folder not in self._names:
            try:
                found = self._hdfs.matching(folder, lambda file: True, prefix=_PREFIX)
                self._names[folder] = frozenset(file.name for file in found)
            except KstreamError:
                self._names[folder] = frozenset()
        return self._names[folder]
