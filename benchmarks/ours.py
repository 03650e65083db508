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
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_kstream.model.cluster import Cluster
    from airflow_kstream.model.lease_recovery import Recovery
    from airflow_kstream.supervise.leases.executor import RecoveryRun, Watcher
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
    from airflow_kstream.model.lease import LeaseRules, Search
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


def execute_recoveries(question: Question) -> dict[str, Any]:
    """List, read, record and recover everything that is open below the folder, regardless of its holder."""
    from airflow_kstream.model.lease_recovery import Target
    from airflow_kstream.model.open_file import FileState

    with _access(question) as session:
        began, begun = datetime.now(UTC), time.perf_counter()
        assert session.rpc
        listed = list(session.rpc.open_files(question["folder"]))
        states = session.rpc.states([file.path for file in listed])
        targets = [
            Target(file.path, state.fingerprint, file.holder, "its writer was killed for a benchmark")
            for file, state in zip(listed, states, strict=True)
            if isinstance(state, FileState)
        ]
        found = time.perf_counter() - begun
        run = _recovered(session, targets, question)
        closed = max(_closed(recovery, began) for recovery in run.recoveries)
        return _told(run) | {"found": found, "seconds": time.perf_counter() - begun, "closed": closed}


def _closed(recovery: Recovery, began: datetime) -> float:
    """Return after how many seconds the file was seen closed; reviewing and recording it come after that."""
    assert recovery.started
    return (recovery.started - began).total_seconds() + recovery.seconds


def _recovered(session: LeaseSession, targets: list[Any], question: Question) -> RecoveryRun:
    from airflow_kstream.clients.hdfs.lease_recovery_native import NativeRecoverer
    from airflow_kstream.policy.leases.limits import RecoveryLimits
    from airflow_kstream.supervise.leases.executor import Tools, execute_recoveries
    from airflow_kstream.supervise.leases.journal import Journal
    from airflow_kstream.supervise.leases.scan_history import lease_folder

    folder = lease_folder(session.cluster.state_dir, session.identity)
    with (
        closing(Journal.begin(session.base.hdfs, folder, session.identity)) as journal,
        closing(NativeRecoverer(session.cluster, session.identity)) as recoverer,
    ):
        assert session.rpc
        tools = Tools(session.rpc, recoverer, session.jmx.health, journal)
        return execute_recoveries(
            targets, tools, RecoveryLimits.unlimited() if question["unlimited"] else RecoveryLimits(), _watcher()
        )


def recover_stuck_files(question: Question) -> dict[str, Any]:
    """Do what the operator and the command do: check twice, judge, probe holders, recover."""
    from datetime import timedelta

    from airflow_kstream.model.lease import LeaseRules, Search
    from airflow_kstream.policy.leases.limits import RecoveryLimits
    from airflow_kstream.supervise.leases.recover import RecoverySettings, recover_stuck_files

    # Include files younger than ten minutes, and ignore the failover that made this NameNode active.
    rules = LeaseRules(min_age=timedelta(0), blackout=timedelta(0))
    settings = RecoverySettings(
        Search(question["folder"]),
        rules,
        limits=RecoveryLimits.unlimited() if question["unlimited"] else RecoveryLimits(),
    )
    with _access(question) as session:
        begun = time.perf_counter()
        done = recover_stuck_files(session, settings, _watcher())
        assert done.run, "nothing was recovered"
        return _told(done.run) | {"seconds": time.perf_counter() - begun, "settle": rules.settle.total_seconds()}


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


def _told(run: RecoveryRun) -> dict[str, Any]:
    from collections import Counter

    outcomes = Counter(recovery.outcome.value for recovery in run.recoveries)
    return {"outcomes": dict(outcomes), "stopped": run.stopped}


def _watcher() -> Watcher:
    from airflow_kstream.supervise.leases.executor import Watcher

    return Watcher(tell=_tell)


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
    "recover": execute_recoveries,
    "rescue": recover_stuck_files,
    "check": check,
}

if __name__ == "__main__":
    answer = _VERBS[sys.argv[1]](json.load(sys.stdin))
    print(json.dumps({**answer, "peak": _peak()}))
