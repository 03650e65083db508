"""YARN of a minicluster: its ResourceManagers, which of them is active, and its NodeManager."""

from __future__ import annotations

from typing import Any

from airflow_kstream.minicluster.answers import NotReady, not_serving
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.web import connect, get_json
from airflow_kstream.model.errors import MiniclusterError

_SERVING = ("active", "standby")


def ask_resourcemanager(name: str, site: Site) -> str:
    """Return the state of a ResourceManager, and the cluster that it made."""
    info = _info(site, name)
    state = info["haState"].lower()
    if state not in _SERVING:
        raise NotReady(state)
    if state == "active":
        # While it recovers applications it reports STARTED and lists none; it binds its RPC port after that.
        connect(site, f"{name}-rpc")
    return f"{state}, cluster {info['id']}"


def ask_nodemanager(site: Site) -> str:
    """Return the NodeManager's health, and the memory that the active ResourceManager has for containers."""
    try:
        active = active_resourcemanager(site)
    except MiniclusterError as error:
        raise NotReady(error.message) from None
    metrics = get_json(site, f"{active}-web", "/ws/v1/cluster/metrics")["clusterMetrics"]
    if not metrics["activeNodes"]:
        raise NotReady("not registered with the ResourceManager")
    info = get_json(site, "nodemanager-web", "/ws/v1/node/info")["nodeInfo"]
    if not info["nodeHealthy"]:
        raise NotReady(info["healthReport"])
    return f"healthy, {metrics['availableMB']} MB free"


def active_resourcemanager(site: Site) -> str:
    """Return the name of the active ResourceManager; a single one is always active.

    Raises MiniclusterError: when none is, with the state of each.
    """
    if len(site.resourcemanagers) == 1:
        return site.resourcemanagers[0]
    states = {name: resourcemanager_state(site, name) for name in site.resourcemanagers}
    for name, state in states.items():
        if state == "active":
            return name
    raise MiniclusterError(f"No ResourceManager is active: {states}")


def resourcemanager_state(site: Site, name: str) -> str:
    """Return `active`, `standby`, `initializing`, or the reason why the ResourceManager does not answer."""
    try:
        return str(_info(site, name)["haState"]).lower()
    except not_serving() as error:
        return f"no answer ({type(error).__name__})"


def _info(site: Site, name: str) -> dict[str, Any]:
    # The one question that a standby answers itself, instead of naming the active one.
    info: dict[str, Any] = get_json(site, f"{name}-web", "/ws/v1/cluster/info")["clusterInfo"]
    return info
