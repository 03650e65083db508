"""The report of a NameNode's /jmx: is it active, since when, is it in safe mode, and how are its DataNodes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import requests

from airflow_kstream.clients.http import http_errors, kerberos_session
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.hdfs_health import HdfsHealth, HdfsInventory
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.known_faults import HadoopVersion

# By version, when erasure coding came.
_CODING = {(3, 0): 0}
_RUNTIME = "java.lang:type=Runtime::StartTime"


class NameNodeJmx:
    """The /jmx of a pair. Any user may read it. Raises Unavailable: when no NameNode says it is active."""

    def __init__(self, addresses: tuple[str, ...], identity: Identity, tls: Tls) -> None:
        self._identity = identity
        # One session per server: their cookies would overwrite each other.
        self._sessions = {address: kerberos_session(identity, tls) for address in addresses}

    def health(self) -> HdfsHealth:
        """Return the active NameNode's view of the cluster; its counts lag behind by up to 10 s."""
        answers: list[str] = []
        for address in self._sessions:
            try:
                status = self._bean(address, "NameNodeStatus")
                if status["State"] == "active":
                    return self._health(address, status)
                answers.append(f"{address} is {status['State']}")
            except KstreamError as error:
                answers.append(error.message)
        raise Unavailable(
            f"no NameNode is active: {'; '.join(answers)}",
            tried="ask the NameNodes for their state",
            server=", ".join(self._sessions),
            principal=str(self._identity),
        )

    def all_reported(self, namenode: str) -> bool:
        """Return whether each live DataNode has sent a full block report since this NameNode started.

        It tells a report's age in whole minutes, which count from the start of its host where there was none
        (FSNamesystem.getLastBlockReport): so one within a minute of its own start does not count yet. Its number of
        stale storages would say nothing before it first checks heartbeats: that begins with 0.
        """
        info = self._bean(namenode, "NameNodeInfo::LiveNodes")
        runtime = self._bean(namenode, "java.lang:type=Runtime::Uptime")
        minutes = int(runtime["Uptime"]) // 60_000
        live = json.loads(info["LiveNodes"])
        return bool(live) and all(int(node["lastBlockReport"]) < minutes for node in live.values())

    def inventory(self, namenode: str) -> HdfsInventory:
        """Return the versions in a nameservice, and whether it has erasure-coded files, as one NameNode tells."""
        info = self._bean(namenode, "NameNodeInfo")
        version = HadoopVersion(str(info["SoftwareVersion"]))
        datanodes = tuple(HadoopVersion(str(one["key"])) for one in info["DistinctVersions"])
        # Before 3.0 nothing is erasure-coded, and there is no such bean.
        coded = self._bean(namenode, "ECBlockGroupsState")["TotalECBlockGroups"] if _has_coding(version) else 0
        return HdfsInventory(namenode, version, datanodes, int(coded))

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _health(self, address: str, status: dict[str, Any]) -> HdfsHealth:
        system = self._bean(address, "FSNamesystemState")
        version = str(self._bean(address, "NameNodeInfo::SoftwareVersion")["SoftwareVersion"])
        return HdfsHealth(
            active=address,
            safe_mode=system["FSState"] != "Operational",
            # DataNodes that were taken out of service on purpose count as dead forever.
            dead=int(system["NumDeadDataNodes"]) - int(system.get("NumDecomDeadDataNodes", 0)),
            stale=int(system["NumStaleDataNodes"]),
            version=version,
            active_since=self._serving_since(address, status),
            live=int(system["NumLiveDataNodes"]),
        )

    def _serving_since(self, address: str, status: dict[str, Any]) -> datetime:
        """Return the later of its last change of state and the end of the safe mode in which it started."""
        started = int(self._bean(address, _RUNTIME)["StartTime"])
        safe_mode = int(self._bean(address, "NameNodeActivity::SafeModeTime").get("SafeModeTime", 0))
        changed = int(status.get("LastHATransitionTime", 0))
        return datetime.fromtimestamp(max(changed, started + safe_mode) / 1000, UTC)

    def _bean(self, address: str, name: str) -> dict[str, Any]:
        """Read a bean by its name, or a single attribute of it as "bean::attribute"."""
        parameter = "get" if "::" in name else "qry"
        url = f"{address}/jmx"
        bean = name if ":type=" in name else f"Hadoop:service=NameNode,name={name}"
        with http_errors(f"read {name} of the NameNode", address, self._identity):
            answer = self._sessions[address].get(url, params={parameter: bean}, timeout=CONNECT_AND_READ_SECONDS)
            return self._first_bean(answer, name, address)

    def _first_bean(self, answer: requests.Response, name: str, address: str) -> dict[str, Any]:
        if answer.status_code in (401, 403):
            raise Denied(
                f"HTTP {answer.status_code}", tried=f"read {name}", server=address, principal=str(self._identity)
            )
        answer.raise_for_status()
        beans = answer.json().get("beans", [])
        if not beans:
            raise Unavailable(
                f"it has no bean {name}", tried="read /jmx", server=address, principal=str(self._identity)
            )
        bean: dict[str, Any] = beans[0]
        return bean


def _has_coding(version: HadoopVersion) -> bool:
    return version.has(_CODING) is not False
