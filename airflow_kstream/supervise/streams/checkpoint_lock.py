"""The numbered record of a checkpoint's owners, in the checkpoint itself."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ConfigDict

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.checkpoint_owner import OWNER_FOLDER, Owner, Ownership, Word, newest_owner, owner_file
from airflow_kstream.model.declared import read_persisted
from airflow_kstream.model.errors import Conflict, InvalidInput
from airflow_kstream.model.hdfs_path import plain_path
from airflow_kstream.supervise.streams.write_once import wrote_once

VERSION = 1
# Other streams' supervisors, as other principals, must be able to read who the owner is.
_FOLDER_MODE = "755"
# Enough to see how the last changes of the owner went.
_KEPT = 10
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
        self._folder = f"{self._checkpoint}/{OWNER_FOLDER}"

    def newest(self) -> Ownership | None:
        """Return the entry that counts; None if the checkpoint never had an owner, or does not exist.

        Costs one request if there is none, and three otherwise. Raises InvalidInput: when the entry can't be read.
        """
        files = {file.name: file for file in self._hdfs.list(self._folder)}
        number = newest_owner(files)
        return self._read(number, files[owner_file(number)].modified) if number else None

    def give(
        self,
        before: Ownership | None,
        owner: Owner,
        *,
        released: bool = False,
        word: Word = Word.NONE,
        reason: str = "",
        generation: int = 0,
    ) -> Ownership:
        """Write the entry after `before`, and return it.

        Raises Conflict: when somebody else wrote one since `before` was read.
        """
        number, nonce = (before.number if before else 0) + 1, uuid.uuid4().hex[:12]
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
        for folder in (self._checkpoint, self._folder):
            self._hdfs.make_folder(folder, _FOLDER_MODE)
        text = json.dumps({"version": VERSION, **vars(entry), "checkpoint": self._checkpoint})
        wrote_once(self._hdfs, f"{self._folder}/{_DRAFT}{nonce}", f"{self._folder}/{owner_file(number)}", text)
        written = self.newest()
        if written is None or written.nonce != nonce:
            raise Conflict(f"the owner of {self._checkpoint} changed meanwhile", tried=f"own {self._checkpoint}")
        self._forget(number)
        return written

    def _read(self, number: int, since: datetime) -> Ownership:
        path = f"{self._folder}/{owner_file(number)}"
        try:
            text = self._hdfs.read(path)
            fields = json.loads(text)
            entry = read_persisted(_Entry, fields)
            version = int(fields.get("version", 1))
        except (ValueError, RecursionError, TypeError, InvalidInput) as error:
            why = error.message if isinstance(error, InvalidInput) else "it is no JSON"
            advice = (
                "nothing is submitted to this checkpoint until somebody has repaired that file, or removed it with "
                f"`hdfs dfs -rm -r {path}`: the entry before it then counts"
            )
            raise InvalidInput(f"{path} can't be understood: {why}; {advice}", tried="read its owner") from error
        return Ownership(
            number=number,
            nonce=entry.nonce,
            owner=Owner(entry.stream, entry.state_dir, entry.filesystem),
            since=since,
            by=entry.by,
            released=entry.released,
            word=Word(entry.word) if entry.word in set(Word) else Word.NONE,
            reason=entry.reason,
            generation=entry.generation,
            newer=version > VERSION,
        )

    def _forget(self, newest: int) -> None:
        """Delete old entries, and drafts of writers that crashed."""
        for file in self._hdfs.list(self._folder):
            if 0 < newest_owner([file.name]) <= newest - _KEPT or self._abandoned(file):
                self._hdfs.delete(f"{self._folder}/{file.name}")

    def _abandoned(self, file: FileStatus) -> bool:
        return file.name.startswith(_DRAFT) and self._hdfs.now() - file.modified > _DRAFT_OF_A_CRASHED_WRITER
