"""The owner of a checkpoint: the one stream whose generations may write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from airflow_kstream.model.clusters.authors import Standing

# In the checkpoint itself, so that every installation finds it, whatever its state_dir. Spark looks only at metadata,
# offsets, commits, sources and state: ResolveWriteToStream and StreamingQueryCheckpointMetadata take other names for
# no data, and mkdirs of a folder that is there changes nothing.
OWNER_FOLDER = "_kstream"
# Longer numbers are a stranger's: nobody could write one above the longest name that HDFS takes.
_ENTRY = re.compile(r"owner-(\d{6,9})")


@dataclass(frozen=True)
class Owner:
    """A stream of one installation. `filesystem` is the default filesystem of its connection."""

    stream: str
    state_dir: str
    filesystem: str

    def __str__(self) -> str:
        return f"stream {self.stream} of state_dir {self.state_dir} on {self.filesystem}"

    def same_stream(self, other: Owner) -> bool:
        """Return True for one stream, even if the filesystem has got another name, as it does when it becomes HA."""
        return (self.stream, self.state_dir.rstrip("/")) == (other.stream, other.state_dir.rstrip("/"))


class OwnerGrant(StrEnum):
    """A person's statement that a checkpoint with data is a stream's from now on."""

    NONE = ""
    ADOPT = "adopt"
    TAKE_OVER = "take-over"


@dataclass(frozen=True)
class OwnerStatement:
    """A person's statement about checkpoints, with its reason. `generation` is what an adopted job is claimed as."""

    word: OwnerGrant = OwnerGrant.NONE
    reason: str = ""
    generation: int = 0


NOTHING_SAID = OwnerStatement()


@dataclass(frozen=True)
class Ownership:
    """One entry in a checkpoint's numbered record of owners; of those that count, the highest number does.

    `since` is by the NameNode's clock. `author` is HDFS's owner of its file, empty if the server tells none, and
    `standing` is what that user's word counts for the stream that reads it; `by` is what the text says of its writer. A
    `released` checkpoint has had this owner and has none now. `word` is the command that gave a checkpoint with data to
    its owner, and `reason` tells what that command had checked. `generation` is the one that an adopted job was to be
    claimed as; 0 if none was. An entry `newer` than this program is left alone.
    """

    number: int
    nonce: str
    owner: Owner
    since: datetime
    by: str = ""
    released: bool = False
    word: OwnerGrant = OwnerGrant.NONE
    reason: str = ""
    generation: int = 0
    newer: bool = False
    author: str = ""
    standing: Standing = Standing.MAY

    @property
    def gives(self) -> bool:
        """Return whether its author may give the checkpoint to the stream that reads it."""
        return self.standing is Standing.MAY

    @property
    def strange(self) -> bool:
        """Return whether its author is known to have no say in the stream that reads it: then it can only refuse."""
        return self.standing is Standing.STRANGER

    def half_adopted(self, claimed: int) -> bool:
        """Return True if a job that writes it was to be adopted, and the stream was claimed only up to `claimed`, 0 for
        never: the command failed before its claim, and the job runs on without a generation."""
        return self.word is OwnerGrant.ADOPT and claimed < max(self.generation, 1)


@dataclass(frozen=True)
class EntryFile:
    """The file of an entry, as its listing shows it: `author` is HDFS's owner of it."""

    number: int
    author: str
    since: datetime


@dataclass(frozen=True)
class Record:
    """A checkpoint's record as one stream reads it: all of its files, and the newest entry that counts.

    `passed` are newer entries of strangers that would give something, and so count for nothing.
    """

    files: tuple[EntryFile, ...] = ()
    entry: Ownership | None = None
    passed: tuple[Ownership, ...] = ()

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(file.number for file in self.files)


def owner_file(number: int) -> str:
    return f"owner-{number:06d}"


def number_of_entry(name: str) -> int | None:
    """Return the number of an entry by its file's name, None for any other file: each number has one name."""
    entry = _ENTRY.fullmatch(name)
    number = int(entry[1]) if entry else 0
    return number if entry and owner_file(number) == name else None
