"""The length of open files for readers: only their DataNodes know it, because the NameNode misses what was flushed."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from airflow_kstream.clients.hdfs.leases import LeaseHdfsPool
from airflow_kstream.clients.hdfs.replicas import ReplicaLengths
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.session import LeaseSession

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
            state.path: state.block.hosts
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
