"""The ids of the shipped DAGs. Each follows from its own declaration alone, so no other declaration changes it."""

from __future__ import annotations

import re

# Airflow's limits for the id of a DAG (airflow.sdk.definitions._internal.node.validate_key).
_NO_ID, _LONGEST_ID = re.compile(r"[^\w.-]", re.ASCII), 250
_LONGEST_NAME = 50


def fit_for_id(name: str) -> str:
    """Return the name with what no DAG's id may hold replaced, short enough for an id with a prefix."""
    return _NO_ID.sub("_", name)[: _LONGEST_ID - len("undeclared-")]


def stream_id(cluster: str, stream: str) -> str:
    """Return the id of a stream's DAG. A stream's name has no dot, so the last one ends the connection's id."""
    return f"stream-{fit_for_id(cluster)[: _LONGEST_ID - len('stream-.') - _LONGEST_NAME]}.{stream}"


def undeclared_id(cluster: str) -> str:
    return f"undeclared-{fit_for_id(cluster)}"


def control_id(cluster: str) -> str:
    return f"control-{fit_for_id(cluster)}"


def fleet_id(cluster: str) -> str:
    return f"fleet-{fit_for_id(cluster)}"


def housekeeping_id(cluster: str) -> str:
    return f"housekeeping-{fit_for_id(cluster)[: _LONGEST_ID - len('housekeeping-')]}"


def doctor_id(cluster: str) -> str:
    return f"doctor-{fit_for_id(cluster)}"


def refused_id(name: str) -> str:
    return f"refused-{fit_for_id(name)}"


def leases_id(cluster: str) -> str:
    return f"leases-{cluster}"


def tickets_id(cluster: str) -> str:
    return f"tickets-{cluster}"


def keytabs_id(cluster: str) -> str:
    return f"keytabs-{cluster}"
