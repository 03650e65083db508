"""Secrets that come and go while the tests run: rotated keytabs, containers' tokens, command lines."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from glob import iglob
from pathlib import Path

import psutil

from tests.secrets.known import keys_of, passwords_in

_EVERY = 1.0
# Below the folder of a minicluster.
_KEYTABS = ("keytabs/*.keytab", "kdc/*.keytab")
_CREDENTIALS = (
    "data/containers/nmPrivate/*/*/*.tokens",
    "data/containers/usercache/*/appcache/*/*/container_tokens",
)
_ITS_FOLDERS = ("keytabs", "kdc", "data")


class Sightings:
    """The secrets that existed, and the command lines of all processes of the machine."""

    def __init__(self) -> None:
        self.secrets: set[bytes] = set()
        self.command_lines: set[str] = set()

    def write(self, file: Path) -> None:
        """Write them into a file that only this user can read."""
        content = {"secrets": sorted(map(bytes.hex, self.secrets)), "command_lines": sorted(self.command_lines)}
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            json.dump(content, opened)

    @classmethod
    def read(cls, files: Iterable[Path]) -> Sightings:
        """Return what all these files hold."""
        found = cls()
        for file in files:
            content = json.loads(file.read_text())
            found.secrets |= set(map(bytes.fromhex, content["secrets"]))
            found.command_lines |= set(content["command_lines"])
        return found


def _found(clusters: Iterable[str], pattern: str) -> Iterator[Path]:
    # Path.glob fails when a folder is deleted meanwhile, as containers' folders are.
    return (Path(path) for cluster in clusters for path in iglob(f"{cluster}/{pattern}"))  # noqa: PTH207


class Watch(Sightings):
    """A thread that looks once a second below pytest's folder, and at all processes."""

    def __init__(self, below: Path) -> None:
        super().__init__()
        self._below = below
        self._known: dict[Path, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        clusters = self._clusters()
        for patterns, read in ((_KEYTABS, keys_of), (_CREDENTIALS, passwords_in)):
            for path in (path for pattern in patterns for path in _found(clusters, pattern)):
                if self._is_other(path):
                    self.secrets |= read(path)
        for process in psutil.process_iter():
            # It may have ended, or forbid it.
            with suppress(psutil.Error):
                self.command_lines.add(" ".join(process.cmdline()))

    def _clusters(self) -> list[str]:
        """Return the folders that may be a minicluster's; most of some hundred are a test's with few files."""
        with os.scandir(self._below) as entries:
            # pytest links to the newest folder of each test.
            folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        return [folder for folder in folders if any(os.path.isdir(f"{folder}/{name}") for name in _ITS_FOLDERS)]  # noqa: PTH112

    def _is_other(self, path: Path) -> bool:
        """Return True if the file was not read yet in its present state."""
        try:
            modified = path.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        before, self._known[path] = self._known.get(path), modified
        return before != modified

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            self.look()
