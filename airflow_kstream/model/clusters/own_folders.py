"""The folders of a state_dir that belong to one author each: orders, declarations, what was told, a lease journal.

Only their owner decides whose they are; the user's name is in theirs for people. A stranger may have taken a name: then
the next one is used. A dot keeps them apart from streams' folders, which have none.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from urllib.parse import quote

# In a folder of leases: one journal's files for each run.
AUDIT_FOLDER = "audit"
# HDFS's names have at most 255 bytes.
_READABLE, DIGITS = 100, 32


class FolderKind(StrEnum):
    """The kinds of what an author keeps."""

    ORDERS = "orders"
    DECLARED = "declared"
    LEASES = "leases"
    TOLD = "told"


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
