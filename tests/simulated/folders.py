"""The files of a stream's folder and of its orders, and what housekeeping knows of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.clusters.authors import FolderKind, folder_name, order_name
from airflow_kstream.model.streams.contract import claim_file, ended_file, fence_name
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.housekeeping import FolderFacts, RetentionCounts
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from tests.simulated.servers import CLUSTER, SimHdfs
from tests.simulated.yarn import START, STREAM, TICKET_SPEC, claim_of

MONTH, DAY = timedelta(days=30), timedelta(days=1)
NOW = START + 400 * DAY
OLD = NOW - 31 * DAY
KEPT = RetentionCounts(claims=10, records=3, orders=10)
STOPPED = Desired(DesiredState.STOPPED, at=OLD)
DRAFT = ".claim-0123456789ab"


def files(generations: int, at: datetime = OLD, *more: str) -> dict[str, datetime | None]:
    """Return a folder with so many generations."""
    numbers = range(1, generations + 1)
    of_generations = [name for number in numbers for name in (claim_file(number), fence_name(number, f"nonce{number}"))]
    ended = [ended_file(number) for number in numbers]
    return dict.fromkeys((*of_generations, *ended, *more), at)


def order_path(subject: object, number: int = 1, user: str = "streamer") -> str:
    """Return where this user's order on a stream's id lies, or on ALL_STREAMS."""
    return f"{CLUSTER.state_dir}/{folder_name(FolderKind.ORDERS, user)}/{order_name(str(subject), number)}"


def keep_copy(hdfs: SimHdfs, stream: object, spec: StreamSpec, user: str) -> None:
    """Keep a copy of this declaration as streamer, a supervisor that read it: the stream runs as this user."""
    folder = f"{CLUSTER.state_dir}/{folder_name(FolderKind.DECLARED, 'streamer')}/{stream}"
    hdfs.write(f"{folder}/{copy_name(fingerprint(spec), user)}", written_copy(spec, user), overwrite=True)


def facts(generations: int = 2, **changed: Any) -> FolderFacts:
    """Return a stream that is gone, unless something is changed."""
    claim = claim_of(TICKET_SPEC, generations, OLD) if generations else None
    usual: dict[str, Any] = {"files": files(generations), "declared": False, "claim": claim, "desired": STOPPED}
    return FolderFacts(STREAM, NOW, **{**usual, **changed})
