"""The numbered record of a checkpoint's owners, in the checkpoint itself."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from pydantic import ConfigDict

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.clusters.authors import Ground, Standing
from airflow_kstream.model.clusters.hdfs_path import as_word, plain_path
from airflow_kstream.model.declared import read_persisted
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.printable import printable
from airflow_kstream.model.streams.checkpoint_owner import (
    OWNER_FOLDER,
    EntryFile,
    Owner,
    OwnerGrant,
    Ownership,
    number_of_entry,
    owner_file,
)
from airflow_kstream.model.versioned import read_any, write
from airflow_kstream.supervise.clusters.state_dir import ground_of
from airflow_kstream.supervise.clusters.write_once import wrote_once
from airflow_kstream.supervise.streams.folder.authored_folder import just_listed, refused_by_owner

VERSION = 1
# Other streams' supervisors, as other principals, must be able to read who the owner is.
_FOLDER_MODE = "755"
# Enough to see how the last changes of the owner went.
_KEPT = 10
# Of what strangers may have written.
_LONGEST_SHOWN = 1000
_DRAFT = ".owner-"
# A writer that is still alive renames its draft within seconds.
_DRAFT_OF_A_CRASHED_WRITER = timedelta(days=1)


@dataclass(frozen=True)
class _Entry:
    """The fields of an entry's file; those of a newer version are dropped."""

    __pydantic_config__ = ConfigDict(extra="ignore")

    stream: str
    state_dir: str
    filesystem: str
    nonce: str
    by: str = ""
    released: bool = False
    word: str = ""
    reason: str = ""
    generation: int = 0


class CheckpointLock:
    """The record of one checkpoint. An entry is renamed onto nothing, so that of two writers one gets each number."""

    def __init__(self, hdfs: Hdfs, checkpoint: str) -> None:
        self._hdfs = hdfs
        self._checkpoint = plain_path(checkpoint)
        self.folder = f"{self._checkpoint}/{OWNER_FOLDER}"

    def files(self) -> tuple[EntryFile, ...]:
        """List the entries, newest first; none if the checkpoint never had an owner, or does not exist."""
        return _entries(self._hdfs.list(self.folder))

    def ground(self) -> Ground:
        """Look at the record's folder. Raises NotFound: when there is none."""
        return ground_of(self._hdfs.status(self.folder))

    def read(self, file: EntryFile, standing: Standing = Standing.MAY) -> Ownership:
        """Read an entry that was listed. Raises InvalidInput: when it can't be understood. Raises Denied: when this
        identity may not read it. Both name its author, and the way out: it may name an owner. Raises Unavailable: when
        it is gone."""
        path = f"{self.folder}/{owner_file(file.number)}"
        try:
            # Who wrote at the same moment as others withdraws.
            version, fields = read_any(just_listed(lambda: self._hdfs.read(path)))
            entry = read_persisted(_Entry, fields)
            owner = Owner(entry.stream, entry.state_dir, entry.filesystem)
            if not _is_owner(owner):
                raise InvalidInput("it names no stream of a state_dir")
        except (InvalidInput, Denied) as error:
            raise _unread(path, file.author, error) from error
        return Ownership(
            number=file.number,
            nonce=entry.nonce,
            owner=owner,
            since=file.since,
            by=printable(entry.by)[:_LONGEST_SHOWN],
            released=entry.released,
            word=OwnerGrant(entry.word) if entry.word in set(OwnerGrant) else OwnerGrant.NONE,
            reason=entry.reason,
            generation=entry.generation,
            newer=version > VERSION,
            author=file.author,
            standing=standing,
        )

    def give(
        self,
        seen: Collection[int],
        owner: Owner,
        *,
        released: bool = False,
        word: OwnerGrant = OwnerGrant.NONE,
        reason: str = "",
        generation: int = 0,
    ) -> None:
        """Write the entry that comes after those that were `seen`, by their numbers.

        Raises Conflict: when somebody else wrote one since they were seen. Raises Denied: when this identity may not
        write here. Raises InvalidInput: when a stranger has left no number.
        """
        number, nonce = max(seen, default=0) + 1, uuid.uuid4().hex[:12]
        name, draft = owner_file(number), f"{self.folder}/{_DRAFT}{nonce}"
        if number_of_entry(name) is None:
            last = f"{self.folder}/{owner_file(number - 1)}"
            raise InvalidInput(f"no number is left after {last}; {_removes(last)}", tried=f"own {self._checkpoint}")
        entry = _Entry(
            stream=owner.stream,
            state_dir=owner.state_dir,
            filesystem=owner.filesystem,
            nonce=nonce,
            by=user_at_host(),
            released=released,
            word=word,
            reason=reason,
            generation=generation,
        )
        text = write(VERSION, {**vars(entry), "checkpoint": self._checkpoint})
        try:
            self._make()
            ours = wrote_once(self._hdfs, draft, f"{self.folder}/{name}", text)
        except Denied as denied:
            raise refused_by_owner(self._hdfs, self.folder, denied, self._ways_out) from denied
        listed = self._hdfs.list(self.folder)
        if not ours or {entry.number for entry in _entries(listed)} - set(seen) != {number}:
            if ours:
                # Who wrote at the same moment may have taken another number, after one that we had not seen.
                self._hdfs.delete(f"{self.folder}/{name}")
            raise Conflict(f"the owner of {self._checkpoint} changed meanwhile", tried=f"own {self._checkpoint}")
        self._forget(listed)

    def _make(self) -> None:
        """Make the folders that are not there. One that is keeps its mode: each entry counts by its own author."""
        for folder in (self._checkpoint, self.folder):
            try:
                self._hdfs.status(folder)
            except NotFound:
                self._hdfs.make_folder(folder, _FOLDER_MODE)
                with suppress(Denied):
                    # Another principal made it a moment before.
                    self._hdfs.close_folder(folder, _FOLDER_MODE)

    def _ways_out(self, owner: str, user: str) -> str:
        return (
            ": if that is the stream's former user, HDFS's superuser hands it on with "
            f"`hdfs dfs -chown -R {as_word(user)} {as_word(self.folder)}`; if {owner} has nothing to do with it, "
            f"`hdfs dfs -rm -r {as_word(self.folder)}` makes way"
        )

    def _forget(self, listed: Collection[FileStatus]) -> None:
        """Delete old entries, and drafts of writers that crashed; leave those of others that we may not delete."""
        old = {owner_file(entry.number) for entry in _entries(listed)[_KEPT:]}
        for file in listed:
            if file.name in old or self._abandoned(file):
                with suppress(Denied, Conflict):
                    self._hdfs.delete(f"{self.folder}/{file.name}")

    def _abandoned(self, file: FileStatus) -> bool:
        return file.name.startswith(_DRAFT) and self._hdfs.now() - file.modified > _DRAFT_OF_A_CRASHED_WRITER


def _entries(listed: Collection[FileStatus]) -> tuple[EntryFile, ...]:
    numbered = ((number_of_entry(file.name), file) for file in listed)
    entries = [EntryFile(number, file.owner, file.modified) for number, file in numbered if number is not None]
    return tuple(sorted(entries, key=lambda entry: entry.number, reverse=True))


def _unread(path: str, author: str, error: InvalidInput | Denied) -> KstreamError:
    whose = f"{path} of {author}" if author else path
    advice = "nothing is submitted to this checkpoint until somebody has repaired that file, or removed it: "
    if isinstance(error, Denied):
        return Denied(
            f"{whose} can't be read: {error.message.rstrip('.')}; {advice}{_removes(path)}", tried="read its owner"
        )
    why = f"{whose} can't be understood: {error.message}"
    return InvalidInput(f"{why}; {advice}{_removes(path)}", tried="read its owner")


def _is_owner(owner: Owner) -> bool:
    """Return whether it can be one: we look for its claims, and show people its name."""
    plain = owner.state_dir.startswith("/") and not {".", ".."} & set(owner.state_dir.split("/"))
    return is_stream_name(owner.stream) and plain and str(owner).isprintable() and len(str(owner)) <= _LONGEST_SHOWN


def _removes(path: str) -> str:
    return f"`hdfs dfs -rm -r {as_word(path)}` does that, and the entry before it then counts"
