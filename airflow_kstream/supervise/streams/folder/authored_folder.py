"""The files of a stream's folder in `state_dir`, with who wrote them: what strangers left there counts for nothing.

The folder is that of the user who submits the stream, until a declaration names another principal.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from airflow_kstream.clients.hdfs.answers import Listing
from airflow_kstream.model.clusters.authors import CLOSING, AuthoredFiles, Ground, Supervisors
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.streams.contract import claims, is_draft
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.policy.authors import needs_ground, sorted_by_author
from airflow_kstream.supervise.clusters.state_dir import ground_of, make_in_state_dir
from airflow_kstream.supervise.clusters.write_once import FILE_MODE, placed, replace_file, text_at, wrote_once

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
    from airflow_kstream.supervise.clusters.session import ClusterSession


def require_own_folder(
    stream: StreamId, folder: FileStatus, user: str, supervisors: Supervisors, ran: Callable[[], bool]
) -> None:
    """Raises Denied: with the way out, when the folder belongs neither to the stream's user nor to a supervisor.

    What lies in a stranger's folder could change at any time. It was made before the stream's first start, or the
    declaration names another principal since: `ran` tells whether claims that count lie in it. Those are never to be
    deleted, because the generation that runs goes by them.
    """
    if folder.owner in {user, ""} or folder.owner in supervisors:
        return
    if ran():
        why = f"{stream.folder} belongs to {folder.owner}{_former(stream, user)}"
    else:
        why = (
            f"{stream.folder} belongs to {folder.owner}, and the stream runs as {user}. If {folder.owner} submitted it "
            f"so far, HDFS's superuser hands it on with {_hand_over(stream, user)}; if {folder.owner} has nothing to "
            f"do with it, with `hdfs dfs -rm -r {as_word(stream.folder)}` the name is free again"
        )
    raise Denied(why, tried=f"write in {stream.folder}")


def _former(stream: StreamId, user: str) -> str:
    return (
        f", who submitted the stream so far, and now it is declared to run as {user}: HDFS's superuser hands it on "
        f"with {_hand_over(stream, user)}, and {user} must be able to write the checkpoints as well"
    )


def _hand_over(stream: StreamId, user: str) -> str:
    # Without -R: whose a generation's application is, the owner of its claim tells.
    return (
        f"`hdfs dfs -chown {as_word(user)} {as_word(stream.folder)}` (without -R); "
        f"`kstream streams hand-over {stream.name} --to {as_word(user)}` tells what comes before it, and checks "
        "afterwards"
    )


@contextmanager
def in_own_folder(hdfs: Hdfs, stream: StreamId) -> Iterator[None]:
    """Write in the stream's folder. Raises Denied: with the way out, when the folder is another principal's."""

    def advice(_: str, user: str) -> str:
        return _former(stream, user)

    try:
        yield
    except Denied as denied:
        raise refused_by_owner(hdfs, stream.folder, denied, advice) from denied


def refused_by_owner(hdfs: Hdfs, folder: str, denied: Denied, advice: Callable[[str, str], str]) -> Denied:
    """Return the refusal of a write in this folder, with `advice` to its owner and to us if those are two users."""
    try:
        owner, user = hdfs.status(folder).owner, hdfs.user()
    except KstreamError:
        return denied
    if owner in {"", user}:
        return denied
    message = f"{denied.message.rstrip('.')}; {folder} belongs to {owner}{advice(owner, user)}"
    return Denied(message, tried=denied.tried, server=denied.server, principal=denied.principal)


T = TypeVar("T")

_NOTHING_IS_DONE = "nothing is done for this stream"


def understood(
    hdfs: Hdfs, stream: StreamId, path: str, read: Callable[[str, FileStatus], T], without: str = _NOTHING_IS_DONE
) -> T:
    """Return what `read` makes of a file's text, and of its author and time by the NameNode.

    `without` says what it means that this file can't be read.

    Raises InvalidInput: with the way out, when it can make nothing of them. Raises NotFound: when there is no file.
    """
    try:
        return read(hdfs.read(path), hdfs.status(path))
    except InvalidInput as error:
        why = error.message
    advice = (
        f"{without} until somebody has repaired that file, or removed it with `hdfs dfs -rm -r {as_word(path)}`: what "
        "is known without it then counts"
    )
    raise InvalidInput(f"{path} can't be understood: {why}; {advice}", tried=f"look at stream {stream.name}")


def just_listed(read: Callable[[], T]) -> T:
    """Read a file whose name was listed. Raises Unavailable: when newer ones have superseded it since."""
    try:
        return read()
    except NotFound as gone:
        message = f"{gone.message}: it was deleted after it was listed"
        raise Unavailable(message, tried=gone.tried, server=gone.server, principal=gone.principal) from gone


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


class AuthoredFolder:
    """The folder of one stream, as far as the authors of its files may speak. Readers see each write complete or not at
    all.

    `acting` is whether the session logged in as the stream's own user, which proves who that is; else the copies of its
    declarations tell.
    """

    def __init__(self, session: ClusterSession, stream: StreamId, *, acting: bool = False) -> None:
        self.session = session
        self._hdfs = session.hdfs
        self._stream = stream
        self._acting = acting

    def names(self) -> frozenset[str]:
        return frozenset(self.authored().counted)

    def authored(self) -> AuthoredFiles:
        """List the files with their owners: those that count, and those of strangers.

        Costs one request, unless somebody wrote who is unknown: then the folder is looked at, and listed once more.
        What lay in it while it was open may have been deleted by the one who closed it since.

        Raises InvalidInput: when there are too many of those that count: a newer claim could be among the rest.
        """
        owners, listing = self._owners()
        users, supervisors = self._users(owners), self.session.state.supervisors
        if not needs_ground(owners, supervisors, users):
            return self._complete(AuthoredFiles(owners, users=users), listing)
        ground = self._ground()
        owners, listing = self._owners()
        return self._complete(sorted_by_author(owners, supervisors, ground, self._users(owners)), listing)

    def judged(self, owners: Mapping[str, str]) -> AuthoredFiles:
        """Sort files that were listed by what their authors count."""
        users, supervisors = self._users(owners), self.session.state.supervisors
        if not needs_ground(owners, supervisors, users):
            return AuthoredFiles(owners, users=users)
        return sorted_by_author(owners, supervisors, self._ground(), users)

    def _complete(self, authored: AuthoredFiles, listing: Listing) -> AuthoredFiles:
        if set(listing.cut) & set(authored.counted.values()):
            words = f"{self._stream.folder}: {listing.words}; {_TOO_MANY}"
            raise InvalidInput(words, tried=f"look at stream {self._stream.name}", server=self._hdfs.servers)
        return replace(authored, cut=listing.words) if listing.cut else authored

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

    def text(self, name: str) -> str:
        """Read a file that was listed. Raises Unavailable: when it was deleted since. Raises InvalidInput: when it is
        no text."""
        return just_listed(lambda: self._hdfs.read(self._path(name)))

    def written_at(self, name: str) -> datetime:
        """Return the NameNode's time of a file that was listed. Raises Unavailable: when it was deleted since."""
        return just_listed(lambda: self._hdfs.status(self._path(name)).modified)

    def put(self, name: str, text: str) -> None:
        """Write a file in place of what stands there."""
        self._hdfs.make_folder(self._stream.folder, _FOLDER_MODE)
        replace_file(self._hdfs, self._path(name), text)

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

    def put_tokens(self, name: str, content: SecretBytes) -> None:
        """Write a credentials file that only the stream's own user may read, in a folder that only it may list."""
        folder = name.rpartition("/")[0]
        self._hdfs.make_folder(self._path(folder), _PRIVATE_FOLDER_MODE)
        self._hdfs.write_secret(self._path(name), content)

    def forget_tokens(self, name: str) -> bool:
        """Delete a credentials file, and return whether this did it: of all who try, HDFS tells one alone so."""
        with suppress(Denied):
            return self._hdfs.delete(self._path(name))
        return False

    def mark(self, marker: str) -> None:
        """Write an empty file. Repeating it is harmless."""
        self._hdfs.write(self._path(marker), "", overwrite=True, permission=FILE_MODE)

    def forget(self, names: Iterable[str]) -> None:
        """Delete these files, and leave those of others that we may not delete: a person's, in a folder of many."""
        for name in names:
            with suppress(Denied):
                self._hdfs.delete(self._path(name))

    def forget_drafts(self, names: frozenset[str], now: datetime) -> None:
        """Delete drafts that are so old that their writer has crashed. `now` is by the NameNode's clock."""
        for name in sorted(filter(is_draft, names)):
            with suppress(NotFound):
                if self._hdfs.status(self._path(name)).modified < now - _WRITING_TAKES_LESS:
                    self.forget([name])

    def _make(self) -> None:
        """Make the folder unless it is there; nobody else may write in it.

        Raises NotFound: when there is no state_dir: who makes it speaks for all of its streams. Raises Denied: when
        the folder is a stranger's, or when the stream's user may make none.
        """
        state = self.session.state
        self._hdfs.status(state.path)
        make_in_state_dir(self._hdfs, self._stream.folder, _FOLDER_MODE)
        folder = self._hdfs.status(self._stream.folder)
        require_own_folder(self._stream, folder, state.user, state.supervisors, self._has_claims)
        proven = self._acting or folder.owner in state.supervisors
        if folder.owner == state.user and proven and (not ground_of(folder).closed or self._is_closing()):
            self._close()

    def _has_claims(self) -> bool:
        try:
            return bool(claims(self.names()))
        except KstreamError:
            # What can't be seen may be a claim.
            return True

    def keep_closed(self) -> bool:
        """Close the folder if it is ours and others could write in it at the last look at the state_dir; return whether
        they could. Costs nothing if they could not."""
        ground = self.session.state.last().ground(str(self._stream))
        if not self._acting or ground is None or ground.closed or ground.owner != self.session.state.user:
            return False
        self._close()
        return True

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

    def _is_closing(self) -> bool:
        """Return whether our own marker lies there: the closing of the folder was interrupted."""
        with suppress(NotFound):
            return self._hdfs.status(self._path(CLOSING)).owner == self.session.state.user
        return False

    def _remove(self, name: str) -> None:
        """Delete a stranger's file; a stranger's folder that holds something is moved to a name that means nothing."""
        try:
            self._hdfs.delete(self._path(name), recursive=True)
        except Denied:
            self._hdfs.rename_onto_nothing(self._path(name), self._path(f"{_STRANGE}{uuid.uuid4().hex}"))

    def _place(self, draft: str, name: str, text: str) -> KstreamError | None:
        return placed(self._hdfs, self._path(draft), self._path(name), text)

    def _delete(self, *names: str) -> None:
        for name in names:
            self._hdfs.delete(self._path(name))

    def _stands(self, name: str, text: str) -> bool:
        return text_at(self._hdfs, self._path(name)) == text

    def _path(self, name: str) -> str:
        return f"{self._stream.folder}/{name}"
