"""A stream's folder in `state_dir`: claims, fences, markers and desired state. It outlives Airflow's database."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.contract import (
    claim_file,
    fence_name,
    generation_of_file,
    newest_claim,
    started_marker,
    stop_marker,
)
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.generation import Claim, Desired, DesiredState, StreamId
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.streams.formats import (
    ClaimDraft,
    read_claim,
    read_desired,
    written_claim,
    written_desired,
    written_stop,
)

T = TypeVar("T")

_DESIRED = "desired.json"
# The watching principal reads what the stream's own principal writes; nothing here is secret.
_FOLDER_MODE, _FILE_MODE = "755", "644"


class StreamFolder:
    """The files of one stream. Readers see each write complete or not at all."""

    def __init__(self, hdfs: Hdfs, stream: StreamId) -> None:
        self._hdfs = hdfs
        self._stream = stream

    def names(self) -> frozenset[str]:
        return frozenset(file.name for file in self._hdfs.list(self._stream.folder))

    def claim(self, names: frozenset[str]) -> Claim | None:
        """Read the highest claim among these names; None if there is none."""
        number = newest_claim(names)
        return self._read_claim(number) if number else None

    def make_claim(self, candidate: ClaimDraft) -> Claim:
        """Get the exclusive right to submit this generation.

        The fence comes first, so that every reader that sees the claim also sees its fence; then the content under a
        name of its own; then one rename that the NameNode grants to a single caller. On any error the claim is read
        back, because our own success can look like a loss.

        Raises Conflict: when another supervisor has it.
        """
        target = self._path(claim_file(candidate.generation))
        fence = self._path(fence_name(candidate.generation, candidate.nonce))
        draft = self._path(f".claim-{candidate.nonce}")
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(fence, f"{self._stream} generation {candidate.generation}\n", permission=_FILE_MODE)
        self._hdfs.write(draft, written_claim(candidate, user_at_host()), permission=_FILE_MODE)
        try:
            self._hdfs.rename_onto_nothing(draft, target)
        except (Conflict, NotFound, Unavailable) as error:
            if not self._is_ours(candidate):
                self._hdfs.delete(draft)
                self._hdfs.delete(fence)
                raise self._lost(candidate, error) from error
        return self._read_claim(candidate.generation)

    def driver_started(self, generation: int, names: frozenset[str]) -> datetime | None:
        """Return when the generation's driver reported its start, by the NameNode's clock; None if it did not."""
        marker = started_marker(generation)
        return self._hdfs.status(self._path(marker)).modified if marker in names else None

    def ask_to_stop(self, generation: int, why: str) -> None:
        self._put(stop_marker(generation), written_stop(why, user_at_host()))

    def take_fence(self, fence: str) -> None:
        self._hdfs.delete(self._path(fence))

    def desired(self, names: frozenset[str]) -> Desired:
        if _DESIRED not in names:
            return Desired()
        path = self._path(_DESIRED)
        return self._understood(path, read_desired)

    def set_desired(self, state: DesiredState, reason: str, restart_up_to: int | None = None) -> None:
        """Write the desired state; the newest write wins. A requested restart stays requested."""
        if restart_up_to is None:
            restart_up_to = self.desired(self.names()).restart_up_to
        self._put(_DESIRED, written_desired(state, restart_up_to, user_at_host(), reason))

    def forget_before(self, generation: int, names: frozenset[str]) -> None:
        """Delete the files of generations before this one; the newest claim always stays."""
        for name in names:
            number = generation_of_file(name)
            if number is not None and number < generation:
                self._hdfs.delete(self._path(name))

    def _put(self, name: str, text: str) -> None:
        draft = self._path(f".{name}.{uuid.uuid4().hex}")
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(draft, text, permission=_FILE_MODE)
        try:
            self._hdfs.rename_over(draft, self._path(name))
        except (NotFound, Unavailable):
            # After a lost reply the other NameNode is asked, which finds the draft gone: the target's text decides.
            if not self._stands(name, text):
                raise

    def _stands(self, name: str, text: str) -> bool:
        try:
            return self._hdfs.read(self._path(name)) == text
        except NotFound:
            return False

    def _is_ours(self, candidate: ClaimDraft) -> bool:
        try:
            return self._read_claim(candidate.generation).nonce == candidate.nonce
        except NotFound:
            return False

    def _lost(self, candidate: ClaimDraft, error: KstreamError) -> KstreamError:
        if isinstance(error, Unavailable):
            return error
        tried = f"claim generation {candidate.generation} of {self._stream.name}"
        return Conflict("another supervisor has it", tried=tried, server=error.server, principal=error.principal)

    def _read_claim(self, number: int) -> Claim:
        claim = self._understood(self._path(claim_file(number)), lambda text, at: read_claim(text, number, at))
        if isinstance(claim.spec, StreamSpec) and claim.spec.name != self._stream.name:
            # A copied folder: acting on this spec would be acting on the other stream.
            return replace(claim, spec=UnknownSpec(f"the claim's spec is of stream {claim.spec.name}"))
        return claim

    def _understood(self, path: str, read: Callable[[str, datetime], T]) -> T:
        try:
            return read(self._hdfs.read(path), self._hdfs.status(path).modified)
        except UnicodeDecodeError:
            why = "it is no text"
        except InvalidInput as error:
            why = error.message
        advice = "nothing is done for this stream until somebody has checked that file"
        raise InvalidInput(f"{path} can't be understood: {why}; {advice}", tried=f"look at stream {self._stream.name}")

    def _path(self, name: str) -> str:
        return f"{self._stream.folder}/{name}"


def new_nonce() -> str:
    return uuid.uuid4().hex[:12]
