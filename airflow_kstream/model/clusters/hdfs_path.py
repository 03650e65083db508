"""Paths of HDFS (absolute, whole characters, one slash between names and none at the end), and the times of files,
which their owners can set (SETTIMES).
"""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime

from airflow_kstream.model.errors import InvalidInput

# Far enough from the last year that Python knows: policies add their durations.
_LATEST_MILLISECONDS = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000

_SCHEME = "hdfs://"


def plain_path(path: str) -> str:
    """Return the path of an absolute path or hdfs:// address, spelled as Hadoop's Path spells it.

    Anything else comes back as it is, for the NameNode to refuse.
    """
    return path_in(path) or path


def path_in(word: str) -> str | None:
    """Return the path that this word names, if it is an absolute path or hdfs:// address; None for any other word."""
    if word.startswith(_SCHEME):
        _, slash, rest = word.removeprefix(_SCHEME).partition("/")
        return _spelled(slash + rest)
    return _spelled(word) if word.startswith("/") else None


def checked_path(path: str) -> str:
    """Return the absolute path as it is sent. Raises InvalidInput: when the NameNode would stumble over it."""
    if not path.startswith("/"):
        raise InvalidInput(f"{path!r} is not an absolute path")
    try:
        path.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise InvalidInput(f"{path!r} is not a path: half a character can't be sent") from None
    return _spelled(path)


def is_below(root: str, path: str) -> bool:
    """Return True if `path` is `root` or lies in it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def as_word(path: str) -> str:
    """Return a path as one word of an `hdfs dfs` command, in which neither a shell nor Hadoop sees a pattern.

    A stranger's file may be called `*`.
    """
    return shlex.quote(re.sub(r"[*?\[\]{}\\]", r"\\\g<0>", path))


def _spelled(path: str) -> str:
    return re.sub("/+", "/", path).rstrip("/") or "/"


def file_time(milliseconds: int) -> datetime:
    """Return a file's time, at the earliest that of 1970 and at the latest that of 2200: a NameNode keeps any number,
    and one that somebody set must not make a whole listing unreadable."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), _LATEST_MILLISECONDS) / 1000, UTC)
