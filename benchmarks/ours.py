"""A process that does one thing with this package, to be measured: python -m benchmarks.ours VERB < QUESTION.

It imports only what the verb needs. Its last line is JSON: the result, the duration without the process's own start,
and the peak memory.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_kstream.model.clusters.cluster import Cluster
    from airflow_kstream.supervise.leases.session import LeaseSession

Question = dict[str, Any]
_WARM = 20


def list_open(question: Question) -> dict[str, Any]:
    """Get the NameNode's list of open files: for the first time, and over the open connection."""
    from airflow_kstream.clients.hdfs.namenode import namenode_rpc

    with _cluster(question) as cluster, closing(namenode_rpc(cluster, cluster.watcher)) as namenode:
        begun = time.perf_counter()
        found = sum(1 for _ in namenode.open_files(question["folder"]))
        cold = time.perf_counter() - begun
        begun = time.perf_counter()
        for _ in range(_WARM):
            list(namenode.open_files(question["folder"]))
        return {"found": found, "seconds": cold, "warm": (time.perf_counter() - begun) / _WARM}


def scan(question: Question) -> dict[str, Any]:
    """Do one full scan: list, measure, remember, judge."""
    from airflow_kstream.model.leases.lease import LeaseRules, Search
    from airflow_kstream.supervise.leases.survey import Surveyor

    with _access(question) as session:
        begun = time.perf_counter()
        survey = Surveyor(session, Search(question["folder"]), LeaseRules(), _tell).scan()
        return {"found": len(survey.findings), "route": survey.route, "seconds": time.perf_counter() - begun}


def walk(question: Question) -> dict[str, Any]:
    """Walk with fsck, a row at a time; `grown` is the growth of this process's peak memory in MB."""
    from airflow_kstream.clients.hdfs.fsck import open_files_by_fsck

    def count(folder: str) -> int:
        return sum(1 for _ in open_files_by_fsck(cluster.namenodes, cluster.watcher, cluster.tls, folder))

    with _cluster(question) as cluster:
        # Logged in and warm: all that it needs from now on is for the tree.
        count(question["small"])
        before, begun = _peak(), time.perf_counter()
        found = count(question["folder"])
        return {"found": found, "seconds": time.perf_counter() - begun, "grown": _peak() - before}


def check(question: Question) -> dict[str, Any]:
    """Measure the cost of a scheduled check beyond that of any task: the sensor's poke, and its imports."""
    os.environ["AIRFLOW_CONN_MINICLUSTER"] = json.dumps({"conn_type": "kstream", "extra": question["connection"]})
    _airflow()
    logging.disable()
    imported, begun = time.process_time(), time.perf_counter()
    from airflow_kstream.sensors.leases import HdfsOpenFileSensor

    sensor = HdfsOpenFileSensor(
        task_id="check", cluster_conn_id="minicluster", path=question["folder"], condition={"until": "none"}
    )
    ready = time.process_time()
    context: Any = {}
    done = sensor.poke(context)
    assert done.is_done
    assert isinstance(done.xcom_value, dict)
    cpu = time.process_time()
    return {
        "found": done.xcom_value["open"],
        "seconds": time.perf_counter() - begun,
        "imports": ready - imported,
        "cpu": cpu - imported,
        "airflow": imported,
        "children": sum(os.times()[2:4]),
    }


def _airflow() -> None:
    """Import the modules that a worker has imported before it reads anything of this package."""
    from airflow.sdk import BaseHook, BaseSensorOperator, PokeReturnValue  # noqa: F401  they are imported lazily


@contextmanager
def _cluster(question: Question) -> Iterator[Cluster]:
    from airflow_kstream.supervise.clusters.connection import cluster_of, connection_fields

    with cluster_of("minicluster", connection_fields("minicluster", question["connection"])) as cluster:
        yield cluster


@contextmanager
def _access(question: Question) -> Iterator[LeaseSession]:
    from airflow_kstream.supervise.leases.session import open_lease_session

    with _cluster(question) as cluster, open_lease_session(cluster, cluster.watcher) as session:
        yield session


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _peak() -> float:
    """Return the peak memory in MB. A child's getrusage would include its parent's memory at the fork."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


_VERBS: dict[str, Callable[[Question], dict[str, Any]]] = {
    "list": list_open,
    "scan": scan,
    "walk": walk,
    "check": check,
}

if __name__ == "__main__":
    answer = _VERBS[sys.argv[1]](json.load(sys.stdin))
    print(json.dumps({**answer, "peak": _peak()}))
