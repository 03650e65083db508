"""A stream's folder in `state_dir`: claims, fences and markers of those who may speak. It outlives Airflow's database.

Its desired state lies beside it, in the folders of the persons who want it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.authors import AuthoredFiles, FolderKind, OrderFile
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.streams.contract import (
    accepted_marker,
    claim_file,
    fence_name,
    newest_accepted,
    newest_claim,
    reached_marker,
    started_marker,
    stop_marker,
)
from airflow_kstream.model.streams.generation import Claim, Desired, DesiredState, Position, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.authors import present_user
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.clusters.write_once import require_exclusive_renames
from airflow_kstream.supervise.streams.folder.authored_folder import (
    AuthoredFolder,
    in_own_folder,
    just_listed,
    understood,
)
from airflow_kstream.supervise.streams.folder.formats import (
    ClaimDraft,
    read_claim,
    read_desired,
    read_positions,
    written_claim,
    written_desired,
    written_positions,
    written_stop,
)

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


_UNNOTICED = "a checkpoint that was restored to an older state since the last submission goes unnoticed"


class StreamFolder(AuthoredFolder):
    """The claims, fences and markers of a stream, and its desired state, which lies beside its folder.

    `by` is the person whose desired states it writes; by default it is this process's user and host.
    """

    def __init__(self, session: ClusterSession, stream: StreamId, by: str = "", *, acting: bool = False) -> None:
        super().__init__(session, stream, acting=acting)
        self._by = by or user_at_host()

    def claim(self, names: frozenset[str], known: Claim | None = None) -> Claim | None:
        """Return the highest claim among these names; None if there is none.

        It is not read if it is the `known` one, as its fence shows: the number alone comes back when a lost folder is
        made again. A copy of its declaration may have been kept since it was read.
        """
        number = newest_claim(names)
        if known and known.generation == number and known.fence in names:
            return self._as_declared(known)
        claim = just_listed(lambda: self._read_claim(number)) if number else None
        same = claim and known and (claim.generation, claim.nonce) == (known.generation, known.nonce)
        return self._as_declared(known) if same and known else claim

    def claim_of(self, number: int) -> Claim:
        """Read the claim of a generation. Raises NotFound: when there is none. Raises InvalidInput: when it can't be
        read."""
        return self._read_claim(number)

    def require_exclusive_claims(self) -> None:
        """Raises InvalidInput: when the server could grant one claim to two supervisors. Raises Denied: when the folder
        can't be written."""
        with in_own_folder(self._hdfs, self._stream):
            self._make()
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
            self._make()
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
        try:
            self.put(name, written_stop(generation, why, user_at_host()))
        except (Conflict, NotFound, Unavailable):
            if name not in self.names():
                raise

    def take_fence(self, fence: str) -> None:
        self._hdfs.delete(self._path(fence))

    def accept(self, generation: int, positions: Mapping[str, Position], reason: str) -> None:
        """Write a person's permission that this generation may start from these positions, and from no others."""
        self.put(accepted_marker(generation), written_positions(positions, user_at_host(), reason))

    def accepted(self, generation: int, names: frozenset[str]) -> Mapping[str, Position] | None:
        """Read the positions from which a person lets the successor of this generation start; None if nobody said so.

        It holds whatever number follows: a stranger's file may have taken one since, or be gone.
        """
        number = newest_accepted(names)
        return self._positions(accepted_marker(number)) if number > generation else None

    def note_reached(self, generation: int, positions: Mapping[str, Position]) -> None:
        """Keep the furthest positions of a generation: they tell a checkpoint that is lost or restored afterwards."""
        self.put(reached_marker(generation), written_positions(positions, user_at_host()))

    def reached(self, generation: int, names: frozenset[str]) -> Mapping[str, Position]:
        """Read the furthest positions that a supervisor saw the generation reach; none if it saw none.

        Raises InvalidInput: when they can't be read.
        """
        marker = reached_marker(generation)
        return self._positions(marker, _UNNOTICED) if marker in names else {}

    def _positions(self, name: str, *without: str) -> Mapping[str, Position]:
        return understood(self._hdfs, self._stream, self._path(name), lambda text, _: read_positions(text), *without)

    def desired(self, order: OrderFile | None) -> Desired:
        """Read the desired state of this order: running, if nobody gave one.

        Raises InvalidInput: with the way out, when it can't be read.
        """
        if order is None:
            return Desired()
        try:
            return read_desired(self.session.orders.text(order), order)
        except (InvalidInput, Denied) as error:
            why = error.message
        advice = (
            "nothing is done until a new order takes its place, or until its author or HDFS's superuser removes it "
            f"with `hdfs dfs -rm -r {as_word(order.path)}`"
        )
        why = f"{order.path} of {order.author} can't be understood: {why}; {advice}"
        raise InvalidInput(why, tried=f"look at stream {self._stream.name}")

    def newest_order(self, authored: AuthoredFiles, listing: StateListing) -> OrderFile | None:
        """Return the order on this stream that counts, its files being those: of the supervisors, or of the stream's
        user."""
        return self.session.orders.newest(str(self._stream), self.speakers(authored, listing), listing)

    def speakers(self, authored: AuthoredFiles, listing: StateListing, giver: str = "") -> frozenset[str]:
        """Return whose orders count beside the supervisors'.

        Where no claim tells that, these are also the users whom copies of its declarations name, and nothing in its
        folder: before its first start, say.
        """
        if present := present_user(authored.counted, listing.ground(str(self._stream))):
            return frozenset({present})
        authors = {giver, *(entry.owner for entry in listing.folders(FolderKind.ORDERS).values())}
        others = {author for author in authors if author not in listing.supervisors} - authored.speakers
        return self.session.copies.users(self._stream, among=others) | authored.speakers

    def repeat_former(self, desired: Desired) -> bool:
        """Repeat in our own name what a former user of the stream ordered last; return whether that was necessary.

        Once our claim stands, only older orders of supervisors would be left, which that one had superseded. Raises as
        `change_desired`.
        """
        state = self.session.state
        if not desired.author or desired.author == state.user or desired.author in state.supervisors:
            return False
        left = self.session.orders.newest(str(self._stream), {state.user}, state.last())
        if self._basis(left).state is desired.state:
            return False
        self.change_desired(lambda newest: newest)
        return True

    def change_desired(self, decide: Callable[[Desired], Desired]) -> None:
        """Give the order that `decide` makes of the newest one. When two persons do so at once, one decides again.

        Raises Conflict: when others always write first, and what `decide` raises.
        """

        def written(basis: OrderFile | None) -> str:
            return written_desired(decide(self._basis(basis)), self._by, new_nonce())

        state = self.session.state
        speakers = self.speakers(self.authored(), state.last(), giver=state.user)
        self.session.orders.give(str(self._stream), speakers, written)

    def _basis(self, order: OrderFile | None) -> Desired:
        """Return what was ordered last. What can't be read holds the stream, and the next order takes its place."""
        try:
            return self.desired(order)
        except InvalidInput as error:
            return Desired(DesiredState.HELD, reason=error.message, number=order.number if order else 0)

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
        path = self._path(claim_file(number))
        claim = understood(
            self._hdfs,
            self._stream,
            path,
            lambda text, file: read_claim(text, number, file.modified).by(file.owner),
        )
        if isinstance(claim.spec, StreamSpec) and claim.spec.name != self._stream.name:
            # A copied folder: acting on this spec would be acting on the other stream.
            return replace(claim, spec=UnknownSpec(f"the claim's spec is of stream {claim.spec.name}"))
        return self._as_declared(claim)

    def _as_declared(self, claim: Claim) -> Claim:
        """Return the claim with the declaration that its fingerprint names, as a supervisor kept it.

        Without a copy, what the claim says of itself is enough to watch it. Whom to tell is never the job's to say, nor
        another supervisor's, whose notifier would run here.
        """
        if isinstance(claim.spec, UnknownSpec) or claim.file.copied:
            return claim
        copy = self.session.copies.of(self._stream, claim.spec_fingerprint, claim.file.author)
        if copy and copy.author == self.session.state.user:
            return replace(claim, spec=copy.spec, file=replace(claim.file, copied=True))
        spec = replace(copy.spec if copy else claim.spec, notify=NotifyPolicy())
        return replace(claim, spec=spec, file=replace(claim.file, copied=bool(copy)))


def new_nonce() -> str:
    return uuid.uuid4().hex[:12]
