"""Who wrote a file of a state_dir, and who may speak there. HDFS's owner tells, never a name inside the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
