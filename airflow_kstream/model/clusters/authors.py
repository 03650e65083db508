"""Who wrote a file of a state_dir, and who may speak there. HDFS's owner tells, never a name inside the text.

Orders, declarations, what was told and a lease journal lie in folders of one author each. HDFS's owner of a folder
decides whose it is; the user's name in its name is for people. If a stranger has taken a name, the next one is used. A
dot in the name keeps them apart from streams' folders, which have none.

Orders are what persons want of a stream, and freezes of all streams. They are numbered over all authors together, and
the highest number of those who may speak counts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from urllib.parse import quote

# In a folder of leases: one journal's files for each run.
AUDIT_FOLDER = "audit"
# HDFS's names have at most 255 bytes.
_READABLE, DIGITS = 100, 32

# The subject of orders on all streams; no stream's folder has a name without a digest.
ALL_STREAMS = "freeze"
_FILE = re.compile(r"(?P<subject>[a-z0-9_-]+)\.(?P<number>\d{6,9})\.json")
# A job runs as its stream's user, and may say the highest number: supervisors have higher ones left.
LAST_OF_SUPERVISORS, LAST_OF_USERS = 999_999_999, 99_999_999

# In a stream's folder while its user closes it: what strangers left there is not deleted yet.
CLOSING = "closing"
# The file in a state_dir that names more supervisors.
SUPERVISORS_FILE = "supervisors"
# Hadoop refuses a rule that makes a short name with a slash or an @ (KerberosName).
_NO_SHORT_NAME = re.compile(r"[\s/@,;:\ufffd]")


class Standing(StrEnum):
    """The weight of an author's words.

    FORMER: the folder was handed over, and this may be who had it before. NOT_PROVEN: nobody can tell yet; it is shown,
    and held against nobody.
    """

    MAY = "may"
    FORMER = "former"
    STRANGER = "stranger"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class Supervisors:
    """The users who may speak for all streams of a state_dir, by HDFS's short names; the same for every reader.

    `superuser` is the owner of `/`, `owner` that of the state_dir, and `named` are those in its file `supervisors`.
    """

    superuser: str
    owner: str
    named: frozenset[str] = frozenset()

    @property
    def users(self) -> frozenset[str]:
        return frozenset({self.superuser, self.owner, *self.named} - {""})

    @property
    def misnamed(self) -> tuple[str, ...]:
        """Return what the file names that no user of HDFS is likely to be called: a principal, or several in a line."""
        return tuple(sorted(name for name in self.named if _NO_SHORT_NAME.search(name)))

    def __contains__(self, user: object) -> bool:
        return bool(user) and (user in (self.superuser, self.owner) or user in self.named)

    def __str__(self) -> str:
        return ", ".join(sorted(self.users))


@dataclass(frozen=True)
class Ground:
    """The folder that a file lies in. `closed`: nobody but its owner and HDFS's superuser can write in it."""

    owner: str
    closed: bool


@dataclass(frozen=True)
class AuthoredFiles:
    """The files of a folder with their owners: those that count, and those of strangers, which don't.

    `users` are the short names that HDFS gave the stream's user, as far as they were proven; without any, the owner of
    the folder passes for that user wherever something is shown, and for nothing that is started. `cut` tells how many
    more files of strangers are not looked at; empty if all are.
    """

    counted: Mapping[str, str] = field(default_factory=dict)
    strangers: Mapping[str, str] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    owner: str = ""
    cut: str = ""

    @property
    def unproven(self) -> str:
        """Return the owner of the folder if it only passes for the stream's user; empty if that one is proven."""
        return "" if self.users else self.owner

    @property
    def speakers(self) -> frozenset[str]:
        """Return whose orders on the stream count beside the supervisors'."""
        return self.users or frozenset({self.owner} - {""})


def is_closed(permission: str, *, acl: bool) -> bool:
    """Return whether nobody but the owner can write in a folder of this octal mode; an ACL may let others."""
    return not acl and all(digit in "0145" for digit in permission[-2:])


def named_supervisors(text: str) -> frozenset[str]:
    """Read the file of supervisors: one short name in a line; what follows a `#` is a remark."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(line for line in lines if line)


@dataclass(frozen=True)
class OrderFile:
    """The file of an order. `author` is HDFS's owner of it, and `at` the file's time.

    That is the NameNode's unless somebody set it. `folder_at` is the time of its folder, which changed last when this
    order or a later one came.
    """

    path: str
    subject: str
    number: int
    author: str
    at: datetime
    folder_at: datetime | None = field(default=None, compare=False)

    @property
    def rank(self) -> tuple[int, datetime, str]:
        """Return what decides between orders: the number and, between persons who spoke at once, the later one."""
        return self.number, self.at, self.author


def order_name(subject: str, number: int) -> str:
    """Return the name of the order of this number on a stream's id, or on ALL_STREAMS."""
    return f"{subject}.{number:06d}.json"


def order_of(name: str) -> tuple[str, int] | None:
    """Return the subject and the number of an order's file, None for any other file."""
    match = _FILE.fullmatch(name)
    return (match["subject"], int(match["number"])) if match else None


class FolderKind(StrEnum):
    """The kinds of what an author keeps."""

    ORDERS = "orders"
    DECLARED = "declared"
    LEASES = "leases"
    TOLD = "told"

    @property
    def mode(self) -> str:
        """Return its folders' octal mode. Orders and declarations are for everybody to read; what was told quotes paths
        and principals, and nobody else goes by it."""
        return _MODES[self]


_MODES = {FolderKind.ORDERS: "755", FolderKind.DECLARED: "755", FolderKind.LEASES: "750", FolderKind.TOLD: "700"}


def folder_name(kind: FolderKind, user: str, number: int = 1) -> str:
    """Return the name of a user's folder of this kind; `number` counts the names that others took before."""
    first = f"{kind}.{quote(user, safe='')}"
    return first if number == 1 else f"{first}.{number}"


def file_about(readable: str, *parts: str) -> str:
    """Return the name of a file that people can read, made unique by a digest of all that it is about."""
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGITS]
    return f"{quote(readable, safe='')[:_READABLE]}-{digest}"


def is_own_draft(name: str) -> bool:
    """Return whether its writer has not yet renamed it into place, and perhaps never will."""
    return name.startswith(".")


def is_folder_of(kind: FolderKind, name: str) -> bool:
    """Return whether a folder of this name may be one of this kind, regardless of its owner."""
    return name.startswith(f"{kind}.")
