"""The namespace that both NameNodes serve: folders, files, times, and who is told of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from posixpath import normpath


class Refused(Exception):
    """A Java exception of the NameNode, by its class."""

    def __init__(self, java: str, message: str) -> None:
        super().__init__(message)
        self.java = java


@dataclass
class Entry:
    """A file or, with `children`, a folder. `modified` is in milliseconds by the NameNode's clock."""

    modified: int
    content: bytes = b""
    children: dict[str, Entry] | None = None
    permission: str = "644"
    owner: str = "streamer"


@dataclass
class Files:
    """One tree. Listeners are called with each path that appears or disappears."""

    root: Entry = field(default_factory=lambda: Entry(0, children={}, permission="777", owner="hdfs"))
    listeners: list[Callable[[str, bool], None]] = field(default_factory=list)

    def find(self, path: str) -> Entry | None:
        entry = self.root
        for part in _parts(path):
            if entry.children is None or part not in entry.children:
                return None
            entry = entry.children[part]
        return entry

    def get(self, path: str) -> Entry:
        entry = self.find(path)
        if entry is None:
            raise Refused("FileNotFoundException", f"File does not exist: {path}")
        return entry

    def exists(self, path: str) -> bool:
        return self.find(path) is not None

    def names(self, path: str) -> tuple[str, ...]:
        entry = self.find(path)
        return tuple(entry.children) if entry and entry.children else ()

    def make_folder(self, path: str, now: int, permission: str = "755") -> Entry:
        entry = self.root
        for part in _parts(path):
            if entry.children is None:
                raise Refused("ParentNotDirectoryException", f"{path} (is not a directory)")
            if part not in entry.children:
                entry.children[part] = Entry(now, children={}, permission=permission)
                entry.modified = now
            entry = entry.children[part]
        if entry.children is None:
            raise Refused("FileAlreadyExistsException", f"Path is not a directory: {path}")
        return entry

    def write(self, path: str, content: bytes, now: int, *, overwrite: bool, permission: str = "644") -> None:
        parent, name = _split(path)
        folder = self.make_folder(parent, now)
        children = folder.children
        assert children is not None
        if name in children and not overwrite:
            raise Refused("FileAlreadyExistsException", f"{path} for client already exists")
        if name not in children:
            folder.modified = now
        children[name] = Entry(now, content, permission=permission)
        self._tell(path, appeared=True)

    def delete(self, path: str, now: int) -> bool:
        entry = self.find(path)
        if entry is None:
            return False
        parent, name = _split(path)
        folder = self.get(parent)
        assert folder.children is not None
        del folder.children[name]
        folder.modified = now
        for gone in _below(path, entry):
            self._tell(gone, appeared=False)
        return True

    def rename(self, source: str, target: str, now: int, *, overwrite: bool) -> None:
        """Rename as `rename2`, the call with options, does."""
        entry = self.find(source)
        if entry is None:
            raise Refused("FileNotFoundException", f"rename source {source} is not found.")
        parent, name = _split(target)
        folder = self.find(parent)
        if folder is None or folder.children is None:
            raise Refused("FileNotFoundException", f"rename destination parent {parent} not found.")
        if name in folder.children and not overwrite:
            raise Refused("FileAlreadyExistsException", f"rename destination {target} already exists")
        source_parent, source_name = _split(source)
        source_folder = self.get(source_parent)
        assert source_folder.children is not None
        del source_folder.children[source_name]
        folder.children[name] = entry
        source_folder.modified = folder.modified = now
        self._tell(source, appeared=False)
        self._tell(target, appeared=True)

    def rename_as_once(self, source: str, target: str, now: int) -> bool:
        """Rename as the old call without options does: False where it can't, and into a target that is a folder."""
        entry = self.find(target)
        if entry is not None and entry.children is not None:
            target = f"{target.rstrip('/')}/{_split(source)[1]}"
            entry = self.find(target)
        if entry is not None or not self.exists(source):
            return False
        try:
            self.rename(source, target, now, overwrite=False)
        except Refused:
            return False
        return True

    def _tell(self, path: str, *, appeared: bool) -> None:
        for listener in self.listeners:
            listener(path, appeared)


def _parts(path: str) -> list[str]:
    return [part for part in normpath(path).split("/") if part]


def _split(path: str) -> tuple[str, str]:
    parent, _, name = normpath(path).rpartition("/")
    return parent or "/", name


def _below(path: str, entry: Entry) -> Iterator[str]:
    if entry.children is None:
        yield path
        return
    for name, child in entry.children.items():
        yield from _below(f"{path}/{name}", child)
