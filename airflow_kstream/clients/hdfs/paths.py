"""Paths as the NameNode takes them: absolute, whole characters, without a slash at the end."""

from __future__ import annotations

from airflow_kstream.model.errors import InvalidInput


def checked(path: str) -> str:
    """The path; raise InvalidInput for what the NameNode would stumble over."""
    if not path.startswith("/"):
        raise InvalidInput(f"{path!r} is no absolute path")
    try:
        path.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise InvalidInput(f"{path!r} is no path: half a character can't be sent") from None
    return path.rstrip("/") or "/"


def is_below(root: str, path: str) -> bool:
    """Whether `path` is `root` or something in it."""
    return path == root or path.startswith(root.rstrip("/") + "/")
