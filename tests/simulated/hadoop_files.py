"""HDFS as a driver's JVM offers it to kstream_driver.py: owners, who may write where, and what was asked.

Each method has Java's name. Who acts is `acts`, whose files are then theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from posixpath import basename, dirname
from types import SimpleNamespace
from typing import Any


class JavaError(Exception):
    """An error of the JVM; it has no Python class of its own."""


@dataclass
class Entry:
    owner: str
    mode: int
    content: bytes = b""
    is_file: bool = True


@dataclass(frozen=True)
class Path:
    path: str

    def getName(self) -> str:
        return basename(self.path)

    def getParent(self) -> Path:
        return Path(dirname(self.path))

    def toUri(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Permission:
    mode: int


@dataclass(frozen=True)
class Status:
    path: str
    entry: Entry

    def getPath(self) -> Path:
        return Path(self.path)

    def getOwner(self) -> str:
        return self.entry.owner

    def getLen(self) -> int:
        return len(self.entry.content)


@dataclass
class HadoopFiles:
    """A filesystem in which `acts` acts, and whose root is its superuser's; `asked` has each request but those that
    write."""

    entries: dict[str, Entry] = field(default_factory=lambda: {"/": Entry("hdfs", 0o755, is_file=False)})
    acts: str = "streamer"
    asked: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    @contextmanager
    def acting(self, user: str) -> Iterator[None]:
        before, self.acts = self.acts, user
        try:
            yield
        finally:
            self.acts = before

    def write(self, path: str, content: bytes = b"{}") -> None:
        self.entries[path] = Entry(self.acts, 0o644, content)

    def make(self, path: str, owner: str, mode: int) -> None:
        self.entries[path] = Entry(owner, mode, is_file=False)

    def names(self, folder: str) -> set[str]:
        return {basename(path) for path in self.entries if dirname(path) == folder}

    def owners(self, folder: str) -> Mapping[str, str]:
        return {basename(path): one.owner for path, one in self.entries.items() if dirname(path) == folder}

    def listStatus(self, folder: Path) -> list[Status]:
        self.asked.append("listing")
        return [Status(path, one) for path, one in self.entries.items() if dirname(path) == folder.path]

    def getFileStatus(self, path: Path) -> Status:
        self.asked.append(f"status of {path}")
        if self.errors:
            raise self.errors.pop()
        if path.path not in self.entries:
            raise JavaError(f"java.io.FileNotFoundException: {path}")
        return Status(path.path, self.entries[path.path])

    def create(self, path: Path, overwrite: bool) -> Any:
        self._may_write(path.path)
        self.write(path.path, b"")
        entry = self.entries[path.path]

        def write(content: bytes) -> None:
            entry.content += content

        return SimpleNamespace(write=write, close=lambda: None)

    def setPermission(self, path: Path, permission: Permission) -> None:
        self.entries[path.path].mode = permission.mode

    def delete(self, path: Path, recursive: bool) -> bool:
        if path.path not in self.entries:
            return False
        self._may_replace(path.path)
        del self.entries[path.path]
        return True

    def rename(self, source: Path, target: Path) -> bool:
        if target.path in self.entries:
            return False
        self.entries[target.path] = self.entries.pop(source.path)
        return True

    def open(self, path: Path) -> Any:
        self.asked.append(f"content of {path}")
        entry = self.entries[path.path]
        if not entry.is_file:
            raise JavaError(f"java.io.FileNotFoundException: Path is not a file: {path}")
        if not entry.mode & (0o400 if self.acts == entry.owner else 0o004):
            raise JavaError(f"AccessControlException: Permission denied: {self.acts}, access=READ, path={path}")
        return SimpleNamespace(content=entry.content, close=lambda: None)

    def close(self) -> None:
        """Close what was opened; it is opened again after an error."""

    def _may_write(self, path: str) -> None:
        folder = self.entries[dirname(path)]
        if self.acts != folder.owner and not folder.mode & 0o002:
            raise JavaError(f"AccessControlException: Permission denied: user={self.acts}, path={path}")

    def _may_replace(self, path: str) -> None:
        self._may_write(path)
        folder, entry = self.entries[dirname(path)], self.entries[path]
        if folder.mode & 0o1000 and self.acts not in (folder.owner, entry.owner):
            raise JavaError(f"AccessControlException: Permission denied by sticky bit: user={self.acts}, path={path}")


def spark_session(files: HadoopFiles, conf: Mapping[str, str]) -> Any:
    """Return a session whose JVM has this filesystem."""
    permission = SimpleNamespace(FsPermission=lambda mode: Permission(int(mode, 8)))
    system = SimpleNamespace(newInstance=lambda uri, settings: files)
    hadoop = SimpleNamespace(fs=SimpleNamespace(FileSystem=system, Path=Path, permission=permission))
    utils = SimpleNamespace(IOUtils=SimpleNamespace(toByteArray=lambda stream, length: stream.content[:length]))
    commons = SimpleNamespace(io=utils)
    context = SimpleNamespace(
        applicationId="application_1_0001",
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop, commons=commons))),
        _jsc=SimpleNamespace(hadoopConfiguration=dict),
        getConf=lambda: conf,
    )
    return SimpleNamespace(conf=conf, sparkContext=context, streams=SimpleNamespace(active=[]))
