"""The length of open files for readers: only their DataNodes know it, because the NameNode misses what was flushed.

`ValidLengths` reads what a Flink bucketing sink says of its part files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.leases import LeaseHdfsPool
from airflow_kstream.clients.hdfs.replicas import ReplicaLengths
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.leases.open_file import FileState

if TYPE_CHECKING:
    from airflow_kstream.supervise.leases.session import LeaseSession


# BucketingSink's defaults: "_part-0-6.in-progress" and "_part-0-6.pending" become "part-0-6", whose companion is
# "_part-0-6.valid-length".
_OPEN_NAME = re.compile(r"_(?P<part>.+)\.(?:in-progress|pending)")
_PREFIX = "_"
# DataOutput.writeUTF wrote it: two bytes with its length, then the decimal number, one of Java's.
_CONTENT = re.compile(r"(?:[\0-\x1f]{2})?(?P<length>\d{1,19})\s*", re.DOTALL)

_Hosts = tuple[str, ...]


class VisibleLengths:
    """Lengths in bytes, by path, of the open files whose DataNodes answer.

    First one file of each set of DataNodes is measured. A silent set, which lets every request run into its timeout,
    is tried once in the life of this object and not for each of its files.
    """

    def __init__(self, source: ReplicaLengths | LeaseHdfsPool) -> None:
        self._source = source
        self._silent: set[_Hosts] = set()

    def of(self, states: Sequence[FileState | KstreamError]) -> dict[str, int]:
        hidden = {
            # The NameNode names them in another order each time.
            state.path: tuple(sorted(state.block.hosts))
            for state in states
            if isinstance(state, FileState) and state.is_open and state.block and not state.measured
        }
        firsts = {hosts: path for path, hosts in self._speaking(hidden).items()}
        lengths = self._measured(list(firsts.values()), hidden)
        rest = [path for path in self._speaking(hidden) if path not in firsts.values()]
        return lengths | self._measured(rest, hidden)

    def _speaking(self, hidden: dict[str, _Hosts]) -> dict[str, _Hosts]:
        return {path: hosts for path, hosts in hidden.items() if hosts not in self._silent}

    def _measured(self, paths: list[str], hosts: dict[str, _Hosts]) -> dict[str, int]:
        answers = dict(zip(paths, self._source.visible_lengths(paths), strict=True))
        self._silent |= {hosts[path] for path, answer in answers.items() if isinstance(answer, Unavailable)}
        return {path: length for path, length in answers.items() if isinstance(length, int)}


class MeasuredStates:
    """States for the recovery, with the length that a reader gets: since the judgement a file may have grown without
    the NameNode's knowledge, for example if a holder that was frozen for longer than its lease goes on.

    If no DataNode answers, a living holder's file can't be recovered; a dead holder's can: its silent DataNodes may be
    why it is stuck.
    """

    def __init__(self, session: LeaseSession, living: Set[str]) -> None:
        self._session = session
        self._living = living
        self._visible = VisibleLengths(session.lengths)

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]:
        states = self._session.states.states(paths)
        lengths = self._visible.of(states)
        return [
            self._with_length(state, lengths.get(path)) if isinstance(state, FileState) else state
            for path, state in zip(paths, states, strict=True)
        ]

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        return self._session.states.closed(paths)

    def _with_length(self, state: FileState, length: int | None) -> FileState | KstreamError:
        if length is not None:
            return replace(state, visible_length=length)
        if state.is_open and not state.measured and state.path in self._living:
            # Without a length, growth of the file can't be ruled out.
            return Unavailable(
                "its DataNodes don't report the length that a reader gets", tried=f"measure {state.path}"
            )
        return state


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
