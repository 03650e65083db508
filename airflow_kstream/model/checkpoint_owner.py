"""The owner of a checkpoint: the one stream whose generations may write it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

# In the checkpoint itself, so that every installation finds it, whatever its state_dir. Spark looks only at metadata,
# offsets, commits, sources and state: ResolveWriteToStream and StreamingQueryCheckpointMetadata take other names for
# no data, and mkdirs of a folder that is there changes nothing.
OWNER_FOLDER = "_kstream"
_ENTRY = re.compile(r"owner-(\d{6,})")


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


class Word(StrEnum):
    """A person's word that a checkpoint with data is a stream's from now on."""

    NONE = ""
    ADOPT = "adopt"
    TAKE_OVER = "take-over"


@dataclass(frozen=True)
class Said:
    """A person's word on checkpoints, and its reason. `generation` is what an adopted job is to be claimed as."""

    word: Word = Word.NONE
    reason: str = ""
    generation: int = 0


NOTHING_SAID = Said()


@dataclass(frozen=True)
class Ownership:
    """One entry in a checkpoint's numbered record of owners; the highest number counts.

    `since` is by the NameNode's clock. A `released` checkpoint has had this owner and has none now. `word` is the
    command that gave a checkpoint with data to its owner, and `reason` tells what that command had checked.
    `generation` is the one that an adopted job was to be claimed as; 0 if none was, or in an entry of an earlier
    version. An entry `newer` than this program is left alone.
    """

    number: int
    nonce: str
    owner: Owner
    since: datetime
    by: str = ""
    released: bool = False
    word: Word = Word.NONE
    reason: str = ""
    generation: int = 0
    newer: bool = False

    def half_adopted(self, claimed: int) -> bool:
        """Return True if a job that writes it was to be adopted, and the stream was claimed only up to `claimed`, 0 for
        never: the command failed before its claim, and the job runs on without a generation."""
        return self.word is Word.ADOPT and claimed < max(self.generation, 1)


def owner_file(number: int) -> str:
    return f"owner-{number:06d}"


def newest_owner(names: Iterable[str]) -> int:
    """Return the highest number among the entries, 0 if there is none."""
    entries = (_ENTRY.fullmatch(name) for name in names)
    return max((int(entry[1]) for entry in entries if entry), default=0)
