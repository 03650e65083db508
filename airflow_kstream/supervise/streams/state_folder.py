"""A stream's folder in `state_dir`: claims, fences, markers and desired state. It outlives Airflow's database."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.contract import (
    accepted_marker,
    claim_file,
    desired_file,
    fence_name,
    is_draft,
    newest_claim,
    newest_desired,
    reached_marker,
    started_marker,
    stop_marker,
)
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.generation import Claim, Desired, Position, StreamId
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.exclusive_renames import require_exclusive_renames
from airflow_kstream.supervise.streams.folder_owner import in_own_folder
from airflow_kstream.supervise.streams.formats import (
    ClaimDraft,
    read_claim,
    read_desired,
    read_positions,
    written_claim,
    written_desired,
    written_positions,
    written_stop,
)
from airflow_kstream.supervise.streams.reading import just_listed, understood
from airflow_kstream.supervise.streams.write_once import FILE_MODE, placed, text_at, wrote_once

# Writers of one desired state are persons: so many of them at the same moment are a fault.
_ATTEMPTS = 20
# Enough to see who wanted what lately; more than a writer between its look and its rename ever lags behind.
DESIRED_KEPT = 10
_WRITING_TAKES_LESS = timedelta(hours=1)
# What anybody writes here, every supervisor must be able to list.
_FOLDER_MODE = "755"
_PRIVATE_FOLDER_MODE = "700"
_UNNOTICED = "a checkpoint that was restored to an older state since the last submission goes unnoticed"


class StreamFolder:
    """The files of one stream. Readers see each write complete or not at all.

    `by` is the person whose desired states it writes; by default it is this process's user and host.
    """

    def __init__(self, hdfs: Hdfs, stream: StreamId, by: str = "") -> None:
        self._hdfs = hdfs
        self._stream = stream
        self._by = by or user_at_host()

    def names(self) -> frozenset[str]:
        return frozenset(self.owners())

    def owners(self) -> Mapping[str, str]:
        """Return the names of the files, each with its owner's short name."""
        return {file.name: file.owner for file in self._hdfs.list(self._stream.folder)}

    def claim(self, names: frozenset[str], known: Claim | None = None) -> Claim | None:
        """Return the highest claim among these names; None if there is none.

        It is not read if it is the `known` one, as its fence shows: the number alone comes back when a lost folder is
        made again.
        """
        number = newest_claim(names)
        if known and known.generation == number and known.fence in names:
            return known
        claim = just_listed(lambda: self._read_claim(number)) if number else None
        same = claim and known and (claim.generation, claim.nonce) == (known.generation, known.nonce)
        return known if same else claim

    def claim_of(self, number: int) -> Claim:
        """Read the claim of a generation. Raises NotFound: when there is none. Raises InvalidInput: when it can't be
        read."""
        return self._read_claim(number)

    def require_exclusive_claims(self) -> None:
        """Raises InvalidInput: when the server could grant one claim to two supervisors. Raises Denied: when the folder
        can't be written."""
        with in_own_folder(self._hdfs, self._stream):
            self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
            require_exclusive_renames(self._hdfs, self._stream.folder)

    def make_claim(self, candidate: ClaimDraft) -> Claim:
        """Get the exclusive right to submit this generation.

        The fence comes first, so that every reader that sees the claim also sees its fence; then the content under a
        name of its own; then one rename that the NameNode grants to a single caller. Whatever the server said to it,
        the claim is read back: our own success can look like a loss, and the success of two like the success of each.

        Raises Conflict: when another supervisor has it. Raises Unavailable: when that is not known; a claim with the
        candidate's nonce, if one turns up, is ours. Raises InvalidInput: when the server can't grant it to one alone.
        """
        draft, fence = f".claim-{candidate.nonce}", fence_name(candidate.generation, candidate.nonce)
        with in_own_folder(self._hdfs, self._stream):
            self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
            self._place_fence(candidate, fence)
        refusal = self._place(draft, claim_file(candidate.generation), written_claim(candidate, user_at_host()))
        claim = None if isinstance(refusal, InvalidInput) else self._found(candidate)
        if claim is None:
            self._delete(draft, fence)
            raise self._lost(candidate, refusal)
        return claim

    def _place_fence(self, candidate: ClaimDraft, fence: str) -> None:
        """Rename the fence into place, too: a server that can't grant a claim shows itself before one is made."""
        draft, text = f".fence-{candidate.nonce}", f"{self._stream} generation {candidate.generation}\n"
        refusal = self._place(draft, fence, text)
        if refusal and (isinstance(refusal, InvalidInput) or not self._stands(fence, text)):
            self._delete(draft, fence)
            raise refusal

    def driver_started(self, generation: int, names: frozenset[str]) -> datetime | None:
        """Return when the generation's driver reported its start, by the NameNode's clock; None if it did not."""
        marker = started_marker(generation)
        return self._hdfs.status(self._path(marker)).modified if marker in names else None

    def ask_to_stop(self, generation: int, why: str) -> None:
        """Write the generation's stop marker. Only its existence counts, so another supervisor's serves as well."""
        name = stop_marker(generation)
        draft = f".{name}.{uuid.uuid4().hex}"
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(self._path(draft), written_stop(why, user_at_host()), permission=FILE_MODE)
        try:
            self._hdfs.rename_over(self._path(draft), self._path(name))
        except (Conflict, NotFound, Unavailable):
            # After a lost reply the other NameNode is asked, which finds the draft gone.
            if name not in self.names():
                raise

    def take_fence(self, fence: str) -> None:
        self._hdfs.delete(self._path(fence))

    def accept(self, generation: int, positions: Mapping[str, Position], reason: str) -> None:
        """Write a person's word that this generation may start from these positions, and from no others."""
        self.put(accepted_marker(generation), written_positions(positions, user_at_host(), reason))

    def accepted(self, generation: int, names: frozenset[str]) -> Mapping[str, Position] | None:
        """Read the positions from which a person lets this generation start; None if nobody said so."""
        marker = accepted_marker(generation)
        return self._positions(marker) if marker in names else None

    def note_reached(self, generation: int, positions: Mapping[str, Position]) -> None:
        """Keep the furthest positions of a generation: they tell a checkpoint that is lost or restored afterwards."""
        self.put(reached_marker(generation), written_positions(positions, user_at_host()))

    def reached(self, generation: int, names: frozenset[str]) -> Mapping[str, Position]:
        """Read the furthest positions that a supervisor saw the generation reach; none if it saw none.

        Raises InvalidInput: when they can't be read.
        """
        marker = reached_marker(generation)
        return self._positions(marker, _UNNOTICED) if marker in names else {}

    def put_once(self, name: str, text: str) -> bool:
        """Write a file that nobody replaces; return False when another writer's text stands there."""
        with in_own_folder(self._hdfs, self._stream):
            self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
            return wrote_once(self._hdfs, self._path(f".{name}.{uuid.uuid4().hex}"), self._path(name), text)

    def text(self, name: str) -> str:
        """Read a file that was listed. Raises Unavailable: when it was deleted since. Raises InvalidInput: when it is
        no text."""
        return just_listed(lambda: self._hdfs.read(self._path(name)))

    def written_at(self, name: str) -> datetime:
        """Return the NameNode's time of a file that was listed. Raises Unavailable: when it was deleted since."""
        return just_listed(lambda: self._hdfs.status(self._path(name)).modified)

    def put(self, name: str, text: str) -> None:
        """Write a file in place of what stands there."""
        draft = f".{name}.{uuid.uuid4().hex}"
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(self._path(draft), text, permission=FILE_MODE)
        try:
            self._hdfs.rename_over(self._path(draft), self._path(name))
        except (Conflict, NotFound, Unavailable):
            # After a lost reply the other NameNode is asked, which finds the draft gone: the target's text decides.
            if not self._stands(name, text):
                raise

    def put_tokens(self, name: str, content: SecretBytes) -> None:
        """Write a credentials file that only the stream's own user may read, in a folder that only it may list."""
        folder = name.rpartition("/")[0]
        self._hdfs.make_folder(self._path(folder), _PRIVATE_FOLDER_MODE)
        self._hdfs.write_secret(self._path(name), content)

    def _positions(self, name: str, *without: str) -> Mapping[str, Position]:
        return understood(self._hdfs, self._stream, self._path(name), lambda text, _: read_positions(text), *without)

    def desired(self, names: frozenset[str]) -> Desired:
        """Read the desired state of the highest number among these names: running, if nobody wrote one."""
        number = newest_desired(names)
        if number is None:
            return Desired()
        return just_listed(lambda: understood(self._hdfs, self._stream, self._path(desired_file(number)), read_desired))

    def change_desired(self, decide: Callable[[Desired], Desired]) -> None:
        """Write the state that `decide` makes of the newest one, under the next number.

        Of two writers one gets that number; the other one reads again and decides again, so no word is lost unread.

        Raises Conflict: when others always write first, and what `decide` raises.
        """
        for _ in range(_ATTEMPTS):
            names = self.names()
            if not names:
                self._make_folder_for_all()
            if self._wrote_desired((newest_desired(names) or 0) + 1, decide(self.desired(names))):
                return
        tried = f"write the desired state of {self._stream.name}"
        raise Conflict(f"others wrote it {_ATTEMPTS} times meanwhile", tried=tried).passing()

    def _make_folder_for_all(self) -> None:
        """Make the folder before the first claim, with the rights of the state_dir.

        The person who writes first need not be the stream's own principal, which could not write its claim otherwise.
        """
        try:
            mode = self._hdfs.status(self._stream.state_dir).permission
        except NotFound:
            mode = _FOLDER_MODE
        self._hdfs.make_folder(self._stream.folder, mode)

    def _wrote_desired(self, number: int, wanted: Desired) -> bool:
        """Return False when somebody else wrote the state of this number.

        A writer that was frozen may find its number free again: then so many wrote after it that its word was not read.
        """
        nonce, path = new_nonce(), self._path(desired_file(number))
        text = written_desired(wanted, self._by, nonce)
        ours = wrote_once(self._hdfs, self._path(f".desired-{nonce}"), path, text)
        return ours and (newest_desired(self.names()) or 0) < number + DESIRED_KEPT

    def mark(self, marker: str) -> None:
        """Write an empty file. Repeating it is harmless."""
        self._hdfs.write(self._path(marker), "", overwrite=True, permission=FILE_MODE)

    def forget_drafts(self, names: frozenset[str], now: datetime) -> None:
        """Delete drafts that are so old that their writer has crashed. `now` is by the NameNode's clock."""
        for name in sorted(filter(is_draft, names)):
            with suppress(NotFound):
                if self._hdfs.status(self._path(name)).modified < now - _WRITING_TAKES_LESS:
                    self.forget([name])

    def forget(self, names: Iterable[str]) -> None:
        """Delete these files, and leave those of others that we may not delete: a person's, in a folder of many."""
        for name in names:
            with suppress(Denied):
                self._hdfs.delete(self._path(name))

    def _place(self, draft: str, name: str, text: str) -> KstreamError | None:
        return placed(self._hdfs, self._path(draft), self._path(name), text)

    def _delete(self, *names: str) -> None:
        for name in names:
            self._hdfs.delete(self._path(name))

    def _stands(self, name: str, text: str) -> bool:
        return text_at(self._hdfs, self._path(name)) == text

    def _found(self, candidate: ClaimDraft) -> Claim | None:
        """Return the claim of the candidate's generation if it is the candidate's own, and the newest.

        A claimer that was frozen since its look finds no file in its way if a clean-up forgot that generation.
        """
        try:
            claim = self._read_claim(candidate.generation)
        except NotFound:
            return None
        newest = newest_claim(self.names()) == candidate.generation
        return claim if newest and claim.nonce == candidate.nonce else None

    def _lost(self, candidate: ClaimDraft, refusal: KstreamError | None) -> KstreamError:
        if isinstance(refusal, Unavailable | InvalidInput):
            return refusal
        tried = f"claim generation {candidate.generation} of {self._stream.name}"
        if refusal is None:
            return Conflict("the server granted it, and yet another supervisor's claim stands there", tried=tried)
        return Conflict("another supervisor has it", tried=tried, server=refusal.server, principal=refusal.principal)

    def _read_claim(self, number: int) -> Claim:
        claim = understood(
            self._hdfs, self._stream, self._path(claim_file(number)), lambda text, at: read_claim(text, number, at)
        )
        if isinstance(claim.spec, StreamSpec) and claim.spec.name != self._stream.name:
            # A copied folder: acting on this spec would be acting on the other stream.
            return replace(claim, spec=UnknownSpec(f"the claim's spec is of stream {claim.spec.name}"))
        return claim

    def _path(self, name: str) -> str:
        return f"{self._stream.folder}/{name}"


def new_nonce() -> str:
    return uuid.uuid4().hex[:12]
