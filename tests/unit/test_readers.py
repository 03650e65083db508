"""What lies below a state_dir is read by few, who know whose word counts there; nobody else lists folders of HDFS."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "airflow_kstream"
LISTING = frozenset({"list", "listing", "matching", "names"})
GO_TO = (
    "a name on HDFS says nothing of its author, so list through what knows the law of docs/security.md: "
    "StreamFolder.authored for a stream's folder, StateListing (session.state) for the state_dir itself, "
    "Orders (session.orders), Copies (session.copies), OwnFiles for what only our own user may say. "
    "What decides by authors itself, or lists outside of state_dir, stands in READERS with its reason"
)


@dataclass(frozen=True)
class Reader:
    """A file that lists folders of HDFS itself, in so many calls, and why that is right."""

    file: str
    calls: int
    reason: str


READERS = (
    Reader(
        "supervise/clusters/state_dir.py",
        3,
        "its readers judge the owner of each entry; a folder that has our name counts only if it is our own",
    ),
    Reader(
        "supervise/clusters/orders.py", 2, "Orders: the owner of each order decides; old ones of our own are deleted"
    ),
    Reader("supervise/clusters/copies.py", 1, "Copies: only those that a supervisor owns"),
    Reader("supervise/clusters/declarations.py", 1, "Declarations: only files that a supervisor owns"),
    Reader("supervise/clusters/told.py", 1, "ToldNotes: only those of our own user"),
    Reader("supervise/leases/own_files.py", 1, "OwnFiles: only those that our own user owns"),
    Reader(
        "supervise/streams/folder/authored_folder.py",
        1,
        "StreamFolder.authored: the policy sorts the files by their authors",
    ),
    Reader("supervise/streams/orders/hand_over.py", 1, "owners are what it shows, strangers' too; it changes nothing"),
    Reader(
        "supervise/streams/housekeeping.py", 6, "old drafts of anybody, our own files, and what StreamFolder judged"
    ),
    Reader("supervise/streams/folder/declared_copies.py", 1, "in our own folder of copies: deletes, and reads nothing"),
    Reader(
        "supervise/streams/pulse/evidence.py",
        1,
        "old evidence, to be deleted from the stream user's private folder",
    ),
    Reader("supervise/streams/pulse/triage.py", 1, "ends of logs for a person to read: nothing is done by them"),
    Reader("supervise/streams/flink/resume_points.py", 4, "the job's user has to own each state that is begun with"),
    Reader(
        "supervise/streams/checkpoint/checkpoint_lock.py",
        2,
        "a checkpoint's record, each entry with its author for the policy",
    ),
    Reader(
        "supervise/doctor/state_dir_use.py", 1, "orders that don't count: names and owners are shown, nothing is read"
    ),
    Reader("supervise/doctor/stream_facts.py", 1, "outside: the staging folders of jobs"),
    Reader("supervise/leases/visible_length.py", 1, "outside: Flink's files beside a file that was recovered"),
    Reader(
        "supervise/streams/flink/flink_progress.py", 1, "outside: a job's checkpoints, with the owner of the newest"
    ),
    Reader(
        "supervise/streams/flink/flink_engine.py",
        3,
        "outside: a job's checkpoints; what a stranger adds keeps files open",
    ),
    Reader("clients/container_logs.py", 2, "outside: where YARN aggregates logs"),
)


def is_hdfs(node: ast.expr) -> bool:
    """Tell whether this is an HDFS client by its name: `hdfs`, `self._hdfs`, `session.hdfs`."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.endswith("hdfs")


def listings(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that list a folder, or take such a method along."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in LISTING and is_hdfs(node.value):
            yield node.lineno


def other_names(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that give an HDFS client a name by which `is_hdfs` would not know it."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=value) if is_hdfs(value) and not is_hdfs(target):
                yield node.lineno
            case ast.NamedExpr(target=target, value=value) if is_hdfs(value) and not is_hdfs(target):
                yield node.lineno
            case ast.arg(arg=name, annotation=ast.Name(id="Hdfs")) if not name.endswith("hdfs"):
                yield node.lineno


@cache
def sources() -> tuple[tuple[str, ast.AST], ...]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple((path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())) for path in paths)


def test_nobody_lists_folders_past_the_law_of_authors() -> None:
    """A new reader goes where authors are judged; a call that went takes its number along."""
    found = {file: [*listings(tree)] for file, tree in sources()}
    allowed = {reader.file: reader.calls for reader in READERS}
    new = [
        f"airflow_kstream/{file}:{lines}: {GO_TO}" for file, lines in found.items() if len(lines) > allowed.get(file, 0)
    ]
    assert new == []
    assert {file: len(lines) for file, lines in found.items() if lines} == allowed


def test_each_reader_stands_there_once_with_its_reason() -> None:
    assert [file for file, times in Counter(reader.file for reader in READERS).items() if times > 1] == []
    assert all(reader.reason for reader in READERS)


def test_an_hdfs_client_keeps_its_name() -> None:
    """Else the test above would not see what it lists."""
    assert [f"airflow_kstream/{file}:{line}" for file, tree in sources() for line in other_names(tree)] == []


@pytest.mark.parametrize(
    ("finds", "code", "found"),
    [
        (listings, "session.hdfs.list(folder)", True),
        (listings, "self._hdfs.matching(folder, wanted)", True),
        (listings, "hdfs.listing(folder, 'gen-')", True),
        (listings, "ask(session.base.hdfs.names, folder)", True),
        (listings, "run.folder.names()", False),
        (listings, "files.list(place, after)", False),
        (listings, "session.hdfs.status(folder)", False),
        (other_names, "web = session.hdfs", True),
        (other_names, "if web := run.session.hdfs: ...", True),
        (other_names, "def look(client: Hdfs) -> None: ...", True),
        (other_names, "hdfs = session.hdfs", False),
        (other_names, "def look(hdfs: Hdfs) -> None: ...", False),
        (other_names, "now = session.hdfs.now()", False),
    ],
)
def test_a_listing_and_another_name_of_a_client_are_found(
    finds: Callable[[ast.AST], Iterator[int]], code: str, found: bool
) -> None:
    assert bool([*finds(ast.parse(code))]) is found
