"""A namespace of a million files, made within seconds: the NameNodes' own checkpoint with more files in it.

Creating them one by one over RPC takes minutes and leaves two million edits, which the standby replays during the
measurements. The files are copies of a real one, which is empty: they have no block.
Field numbers are those of fsimage.proto.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.record import read_site
from airflow_kstream.model.errors import MiniclusterError
from airflow_kstream.model.formats.protobuf import Message, delimited, encode, split_delimited, varint

_MAGIC = b"HDFSIMG1"
_FILES_IN_A_FOLDER = 1000
_FILE, _FOLDER = 1, 2
_SEED = ".seed"


@dataclass(frozen=True)
class Lake:
    """A folder with `files` closed files, a thousand in each of `folders`."""

    path: str
    files: int

    @property
    def folders(self) -> list[str]:
        return [f"d{number:05}" for number in range(-(-self.files // _FILES_IN_A_FOLDER))]


def fill(minicluster: Minicluster, lake: Lake) -> None:
    """Make the lake, and return when both NameNodes serve it; they are restarted for that."""
    _admin(minicluster, "dfs", "-mkdir", "-p", lake.path, as_="streamer")
    # `touch` without -c makes an empty file.
    _admin(minicluster, "dfs", "-touchz", f"{lake.path}/{_SEED}", as_="streamer")
    _admin(minicluster, "dfsadmin", "-safemode", "enter")
    _admin(minicluster, "dfsadmin", "-saveNamespace")
    data, names = read_site(minicluster.root).folders.data, ("nn1", "nn2")
    for name in names:
        minicluster.kill(name)
    # The last by name, which ends with the last edit: that of the active NameNode.
    images = (path for path in data.glob("nn?/current/fsimage_*") if not path.suffix)
    newest = max(images, key=lambda path: path.name)
    image = b"".join(_image(newest.read_bytes(), lake))
    for name in names:
        _write(data / name / "current" / newest.name, image)
    for name in names:
        minicluster.start(name)
    # While they wait for their block reports, none of them becomes active.
    Retrying(retry=retry_if_exception_type(MiniclusterError), wait=wait_fixed(0.5), stop=stop_after_delay(60))(
        minicluster.failover
    )


def _admin(minicluster: Minicluster, *arguments: str, as_: str = "hdfs") -> None:
    done = minicluster.hdfs(*arguments, as_=as_)
    if done.returncode:
        raise RuntimeError(f"hdfs {' '.join(arguments)}: {done.stderr[-500:]}")


def _write(path: Path, image: bytes) -> None:
    path.write_bytes(image)
    path.with_name(f"{path.name}.md5").write_text(f"{hashlib.md5(image).hexdigest()} *{path.name}\n")


def _image(image: bytes, lake: Lake) -> Iterator[bytes]:
    """Yield the checkpoint with the lake's folders and files in it; all other sections are unchanged."""
    summary = Message(_last_message(image))
    sections = {each.text(1): image[each.number(3) :][: each.number(2)] for each in summary.messages(4)}
    growth = _Growth(sections["INODE"], lake)
    sections |= {"INODE": growth.inodes(), "INODE_DIR": sections["INODE_DIR"] + growth.entries()}
    yield _MAGIC
    written, offset = [], len(_MAGIC)
    for name, content in sections.items():
        yield content
        written.append(encode({1: name, 2: len(content), 3: offset}))
        offset += len(content)
    tail = delimited(encode({1: summary.number(1), 2: summary.number(2), 4: written}))
    yield tail + len(tail).to_bytes(4)


def _last_message(image: bytes) -> bytes:
    size = int.from_bytes(image[-4:])
    (message,) = split_delimited(image[-4 - size : -4])
    return message


class _Growth:
    """The added inodes: their ids follow the last one, folders first."""

    def __init__(self, section: bytes, lake: Lake) -> None:
        header, *self._inodes = split_delimited(section)
        self._lake = lake
        self._first = Message(header).number(1) + 1
        parsed = {inode.text(3): inode for inode in map(Message, self._inodes)}
        self._place = parsed[lake.path.rpartition("/")[2]]
        # The fields of a file and of a folder besides the name: owner, mode, times, no quota.
        self._file, self._folder = parsed[_SEED].data(4), self._place.data(5)

    def inodes(self) -> bytes:
        names = [_inode_file(number) for number in range(self._lake.files)]
        folders = [(name, {5: self._folder}, _FOLDER) for name in self._lake.folders]
        return b"".join(map(delimited, self._all(folders, names)))

    def _all(self, folders: list[tuple[str, dict[int, bytes], int]], files: list[str]) -> Iterator[bytes]:
        yield encode({1: self._first + len(folders) + len(files) - 1, 2: len(self._inodes) + len(folders) + len(files)})
        yield from self._inodes
        for number, (name, what, kind) in enumerate(folders):
            yield encode({1: kind, 2: self._first + number, 3: name, **what})
        # Encoded once: of a million entries, all but two fields are the same.
        front, back = encode({1: _FILE}), encode({4: self._file})
        begin = self._first + len(folders)
        for number, name in enumerate(files, begin):
            yield front + b"\x10" + varint(number) + b"\x1a" + delimited(name.encode()) + back

    def entries(self) -> bytes:
        """Return the children of each folder in the order of their names, as the NameNode keeps them."""
        folders = range(self._first, self._first + len(self._lake.folders))
        files = self._first + len(self._lake.folders)
        bounds = [*range(files, files + self._lake.files, _FILES_IN_A_FOLDER), files + self._lake.files]
        inside = (_entry(folder, range(*bound)) for folder, bound in zip(folders, pairwise(bounds), strict=True))
        return b"".join([_entry(self._place.number(2), folders), *inside])


def _inode_file(number: int) -> str:
    return f"part-{number:07}.avro"


def _entry(parent: int, children: Iterable[int]) -> bytes:
    return delimited(encode({1: parent, 2: b"".join(map(varint, children))}))
