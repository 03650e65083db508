"""A stream's folder in `state_dir`: claims, fences and markers of those who may speak. It outlives Airflow's database.

Its desired state lies beside it, in the folders of the persons who want it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.clients.hdfs.webhdfs import Listing
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.authors import CLOSING, Authored, Ground
from airflow_kstream.model.contract import (
    accepted_marker,
    claim_file,
    fence_name,
    is_draft,
    newest_accepted,
    newest_claim,
    reached_marker,
    started_marker,
    stop_marker,
)
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.generation import Claim, Desired, DesiredState, Position, StreamId
from airflow_kstream.model.notify import NotifyPolicy
from airflow_kstream.model.orders import OrderFile
from airflow_kstream.model.own_folders import FolderKind
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.policy.authors import needs_ground, present_user, sorted_by_author
from airflow_kstream.supervise.clusters.exclusive_renames import require_exclusive_renames
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import StateListing, ground_of
from airflow_kstream.supervise.clusters.write_once import FILE_MODE, placed, text_at, wrote_once
from airflow_kstream.supervise.streams.folder_owner import in_own_folder, require_own_folder
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
from airflow_kstream.supervise.streams.reading import just_listed, understood, understood_order

_WRITING_TAKES_LESS = timedelta(hours=1)
# What anybody writes here, every supervisor must be able to list.
_FOLDER_MODE = "755"
_PRIVATE_FOLDER_MODE = "700"
_TOO_MANY = (
    "its newest claim may be among them. The stream goes on running meanwhile. `hdfs dfs -ls` shows what they are; "
    "delete what is not a supervisor's, such as the job's own output, then files of old generations"
)
# What nobody else could delete of a stranger's.
_STRANGE = ".strange-"
_UNNOTICED = "a checkpoint that was restored to an older state since the last submission goes unnoticed"


class StreamFolder:
    """The files of one stream, as far as their authors may speak. Readers see each write complete or not at all.

    `by` is the person whose desired states it writes; by default it is this process's user and host. `acting` is
    whether the session logged in as the stream's own user, which proves who that is; else the copies of its
    declarations tell.
    """

    def __init__(self, session: ClusterSession, stream: StreamId, by: str = "", *, acting: bool = False) -> None:
        self.session = session
        self._hdfs = session.hdfs
        self._stream = stream
        self._by = by or user_at_host()
        self._acting = acting

    def names(self) -> frozenset[str]:
        return frozenset(self.authored().counted)

    def authored(self) -> Authored:
        """List the files with their owners: those that count, and those of strangers.

        Costs one request, unless somebody wrote who is unknown: then the folder is looked at, and listed once more.
        What lay in it while it was open may have been deleted by the one who closed it since.

        Raises InvalidInput: when there are too many of those that count: a newer claim could be among the rest.
        """
        owners, listing = self._owners()
        users, supervisors = self._users(owners), self.session.state.supervisors
        if not needs_ground(owners, supervisors, users):
            return self._complete(Authored(owners, users=users), listing)
        ground = self._ground()
        owners, listing = self._owners()
        return self._complete(sorted_by_author(owners, supervisors, ground, self._users(owners)), listing)

    def _complete(self, authored: Authored, listing: Listing) -> Authored:
        if set(listing.cut) & set(authored.counted.values()):
            words = f"{self._stream.folder}: {listing.words}; {_TOO_MANY}"
            raise InvalidInput(words, tried=f"look at stream {self._stream.name}", server=self._hdfs.servers)
        return replace(authored, cut=listing.words) if listing.cut else authored

    def judged(self, owners: Mapping[str, str]) -> Authored:
        """Sort files that were listed by what their authors count."""
        users, supervisors = self._users(owners), self.session.state.supervisors
        if not needs_ground(owners, supervisors, users):
            return Authored(owners, users=users)
        return sorted_by_author(owners, supervisors, self._ground(), users)

    def _owners(self) -> tuple[Mapping[str, str], Listing]:
        listing = self._hdfs.listing(self._stream.folder)
        return {file.name: file.owner for file in listing.entries}, listing

    def _users(self, owners: Mapping[str, str]) -> frozenset[str]:
        """Return who the stream's user is, as far as it matters for these owners: by the login, and by the copies."""
        state = self.session.state
        acting = frozenset({state.user} if self._acting else ())
        known = acting | {""}
        unknown = {
            name: owner for name, owner in owners.items() if owner not in known and owner not in state.supervisors
        }
        return acting | self.session.copies.users_of(self._stream, unknown)

    def _ground(self) -> Ground | None:
        with suppress(NotFound):
            return ground_of(self._hdfs.status(self._stream.folder))
        return None

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

    def _make(self) -> None:
        """Make the folder unless it is there; nobody else may write in it.

        Raises NotFound: when there is no state_dir: who makes it speaks for all of its streams. Raises Denied: when
        the folder is a stranger's.
        """
        state = self.session.state
        self._hdfs.status(state.path)
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        folder = self._hdfs.status(self._stream.folder)
        require_own_folder(self._stream, folder, state.user, state.supervisors)
        proven = self._acting or folder.owner in state.supervisors
        if folder.owner == state.user and proven and (not ground_of(folder).closed or self._is_closing()):
            self._close()

    def keep_closed(self) -> bool:
        """Close the folder if it is ours and others could write in it at the last look at the state_dir; return whether
        they could. Costs nothing if they could not."""
        ground = self.session.state.last().ground(str(self._stream))
        if not self._acting or ground is None or ground.closed or ground.owner != self.session.state.user:
            return False
        self._close()
        return True

    def _is_closing(self) -> bool:
        """Return whether our own marker lies there: the closing of the folder was interrupted."""
        with suppress(NotFound):
            return self._hdfs.status(self._path(CLOSING)).owner == self.session.state.user
        return False

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
        draft = f".{name}.{uuid.uuid4().hex}"
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        self._hdfs.write(self._path(draft), written_stop(generation, why, user_at_host()), permission=FILE_MODE)
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
        """Read the positions from which a person lets the successor of this generation start; None if nobody said so.

        The word holds whatever number follows: a stranger's file may have taken one since, or be gone.
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

    def put_once(self, name: str, text: str) -> bool:
        """Write a file that nobody replaces; return False when another writer's text stands there.

        A stranger's doesn't count: where one occupies the name, our folder is closed, without strangers' files. Raises
        Conflict: when it is not ours to close.
        """
        with in_own_folder(self._hdfs, self._stream):
            self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
            if self._wrote_once(name, text):
                return True
            if name in self.names():
                return False
            self._make()
            return self._wrote_once(name, text) or self._require_counted(name)

    def _wrote_once(self, name: str, text: str) -> bool:
        return wrote_once(self._hdfs, self._path(f".{name}.{uuid.uuid4().hex}"), self._path(name), text)

    def _require_counted(self, name: str) -> bool:
        """Return False for another writer's file that counts. Raises Conflict: for a stranger's."""
        stranger = self.authored().strangers.get(name)
        if stranger is None:
            return False
        path = self._path(name)
        why = (
            f"{path} is {stranger}'s, whose word does not count: the owner of {self._stream.folder} or HDFS's "
            f"superuser closes the folder with `hdfs dfs -chmod {_FOLDER_MODE}`, and removes the file"
        )
        raise Conflict(why, tried=f"write {path}", server=self._hdfs.servers)

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

    def desired(self, order: OrderFile | None) -> Desired:
        """Read the desired state of this order: running, if nobody gave one.

        Raises InvalidInput: with the way out, when it can't be read.
        """
        if order is None:
            return Desired()
        return understood_order(self.session.orders.text, order, f"look at stream {self._stream.name}", read_desired)

    def newest_order(self, authored: Authored, listing: StateListing) -> OrderFile | None:
        """Return the order on this stream that counts, its files being those: of the supervisors, or of the stream's
        user."""
        return self.session.orders.newest(str(self._stream), self._speakers(authored, listing), listing)

    def _speakers(self, authored: Authored, listing: StateListing, giver: str = "") -> frozenset[str]:
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
        """Give the order that `decide` makes of the newest one. Of two persons who speak at once one decides again.

        Raises Conflict: when others always write first, and what `decide` raises.
        """

        def written(basis: OrderFile | None, number: int) -> str:
            return written_desired(decide(self._basis(basis)), self._by, new_nonce())

        state = self.session.state
        speakers = self._speakers(self.authored(), state.last(), giver=state.user)
        self.session.orders.give(str(self._stream), speakers, written)

    def _basis(self, order: OrderFile | None) -> Desired:
        """Return what was ordered last. What can't be read holds the stream, and the next order takes its place."""
        try:
            return self.desired(order)
        except InvalidInput as error:
            return Desired(DesiredState.HELD, reason=error.message, number=order.number if order else 0)

    def mark(self, marker: str) -> None:
        """Write an empty file. Repeating it is harmless."""
        self._hdfs.write(self._path(marker), "", overwrite=True, permission=FILE_MODE)

    def _close(self) -> None:
        """Close our folder that others could write in, without what strangers left there.

        In a closed folder they could pass for a former user's. So the marker comes first and goes last: while it lies
        there, the folder counts as open, wherever this is interrupted; the next claimer goes on. Our own marker is
        never taken away before: another supervisor may have come further.
        """
        try:
            self.mark(CLOSING)
        except (Denied, Conflict):
            # A stranger's file or folder has its name.
            self._remove(CLOSING)
            self.mark(CLOSING)
        self._hdfs.close_folder(self._stream.folder, _FOLDER_MODE)
        # More than one listing holds are removed in turns.
        while strangers := [name for name in self.authored().strangers if not name.startswith(_STRANGE)]:
            for name in strangers:
                self._remove(name)
        self._hdfs.delete(self._path(CLOSING))

    def _remove(self, name: str) -> None:
        """Delete a stranger's file; a stranger's folder that holds something is moved to a name that means nothing."""
        try:
            self._hdfs.delete(self._path(name), recursive=True)
        except Denied:
            self._hdfs.rename_onto_nothing(self._path(name), self._path(f"{_STRANGE}{uuid.uuid4().hex}"))

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
        path = self._path(claim_file(number))
        claim = understood(
            self._hdfs,
            self._stream,
            path,
            lambda text, file: replace(read_claim(text, number, file.modified), author=file.owner),
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
        if isinstance(claim.spec, UnknownSpec) or claim.copied:
            return claim
        copy = self.session.copies.of(self._stream, claim.spec_fingerprint, claim.author)
        if copy and copy.author == self.session.state.user:
            return replace(claim, spec=copy.spec, copied=True)
        return replace(claim, spec=replace(copy.spec if copy else claim.spec, notify=NotifyPolicy()), copied=bool(copy))

    def _path(self, name: str) -> str:
        return f"{self._stream.folder}/{name}"


def new_nonce() -> str:
    return uuid.uuid4().hex[:12]
