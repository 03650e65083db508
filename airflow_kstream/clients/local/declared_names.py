"""The names of the streams that have a file in a folder of declarations, read or refused."""

from __future__ import annotations

from pathlib import Path


def declared_names(folder: Path | None) -> frozenset[str] | None:
    """Return the names in the folder and below, whichever connection they are for; None if that is not known.

    A folder without any file proves nothing: its disk may not be mounted, or a checkout may be under way.
    """
    if folder is None:
        return None
    try:
        return frozenset(file.stem for file in folder.rglob("*.y*ml")) or None
    except OSError:
        return None
