"""The text of an fsck, and histories of open files as checks see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.clients.hdfs.fsck import FsckReader
from airflow_kstream.model.leases.lease import LeaseRules
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile

HEADER = "FSCK started by etl (auth:KERBEROS_SSL) from /10.0.0.1 for path /data at Sat Nov 21 08:49:12 UTC 2026\n\n"
ENDED = "FSCK ended at Sat Nov 21 08:49:13 UTC 2026 in 217 milliseconds\n"
HEALTHY = f"\nStatus: HEALTHY\n Number of data-nodes:\t1\n{ENDED}\n\nThe filesystem under path '/data' is HEALTHY"
SIZES = (
    " 300000 bytes, replicated: replication=3, 1 block(s), OPENFORWRITE: ",
    " 0 bytes, erasure-coded: policy=RS-6-3-1024k, 0 block(s), OPENFORWRITE: ",
    " 7 bytes, 1 block(s), OPENFORWRITE: ",
)
REPORTS = (
    "",
    "\n/data/x: CORRUPT blockpool BP-1-127.0.0.1-17 block blk_1073741825\n",
    "\n/data/x: MISSING 1 blocks of total size 300000 B.",
    "\n/data/x:  Under replicated BP-1-127.0.0.1-17:blk_1_1. Target Replicas is 3 but found 1 live replica(s), "
    "0 decommissioned replica(s), 0 decommissioning replica(s).\n",
    "\n/data/x:  Replica placement policy is violated for BP-1-127.0.0.1-17:blk_1_1. Block should be additionally "
    "replicated on 1 more rack(s). Total number of racks in the cluster: 1\n",
)


def read(text: str, piece: int = 1 << 16) -> list[str]:
    reader = FsckReader()
    paths = [path for part in pieces(text, piece) for path in reader.feed(part)]
    reader.finish()
    return paths


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


START = datetime(2026, 3, 1, tzinfo=UTC)
FILE = OpenFile("/data/events/part-0-6.in-progress", 16_401, "DFSClient_NONMAPREDUCE_1_30", "worker7")
STATE = FileState(
    path=FILE.path,
    file_id=16_401,
    owner="streamer",
    modified=START - timedelta(hours=2),
    is_open=True,
    length=0,
    block=Block(1_073_741_900, 1_076, 0, complete=False, hosts=("worker7",)),
    visible_length=5_000,
)
RULES = LeaseRules()


def history_of(*checks: tuple[datetime, FileState]) -> FileHistory:
    (first, state), *later = checks
    history = FileHistory.begin(FILE, state, first)
    for now, state in later:
        history = history.extended(FILE, state, now, now)
    return history


# A writer's action between two checks; the last field is True if the check learns the length that readers see.
@dataclass(frozen=True)
class Growth:
    gap: timedelta
    written: int
    new_block: bool
    synced: bool
    measured: bool


def grown(state: FileState, growth: Growth, now: datetime) -> FileState:
    """Return the state after a write: the NameNode knows of a whole block or a sync, a reader of everything."""
    assert state.block
    visible = (state.visible_length or 0) + growth.written
    block = replace(
        state.block,
        id=state.block.id + growth.new_block,
        length=growth.written if growth.synced else state.block.length,
    )
    length = visible if growth.new_block or growth.synced else state.length
    return replace(state, length=length, block=block, visible_length=visible)


def checks_of(growths: list[Growth]) -> list[tuple[datetime, FileState]]:
    now, state, checks = START, STATE, [(START, STATE)]
    for growth in growths:
        now += growth.gap
        state = grown(state, growth, now)
        checks.append((now, state if growth.measured else replace(state, visible_length=None)))
    return checks
