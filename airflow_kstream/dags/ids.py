"""The ids of the shipped DAGs. Each follows from its own declaration alone, so no other declaration changes it.

Before each stands `[kstream] dag_id_prefix`, as the DAG processor, the workers and the API server have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from airflow_kstream import settings
from airflow_kstream.model.errors import InvalidInput

# Airflow's limits for the id of a DAG (airflow.sdk.definitions._internal.node.validate_key).
_NO_ID, _LONGEST_ID, _LONGEST_PREFIX = re.compile(r"[^\w.-]", re.ASCII), 250, 40
_LONGEST_NAME = 50


class Family(StrEnum):
    """The families of shipped DAGs: what stands before the hyphen in an id."""

    STREAM = "stream"
    UNDECLARED = "undeclared"
    REFUSED = "refused"
    CONTROL = "control"
    FLEET = "fleet"
    HOUSEKEEPING = "housekeeping"
    DOCTOR = "doctor"
    LEASES = "leases"
    TICKETS = "tickets"
    KEYTABS = "keytabs"
    TOKENS = "tokens"


# Without these, a stream that runs could be left alone, or a wrong file be silent. An empty folder declares none.
_NEEDED = (Family.STREAM, Family.UNDECLARED, Family.REFUSED)


def prefix() -> str:
    """Return what stands before each id; characters that no id may hold are replaced."""
    return _NO_ID.sub("_", settings.text("dag_id_prefix"))[:_LONGEST_PREFIX]


def dag_id(family: Family, name: str, before: str | None = None) -> str:
    """Make the id of a DAG. `before` is the prefix, by default the configured one."""
    before = prefix() if before is None else before
    return f"{before}{family}-{name[: _LONGEST_ID - len(before) - len(family) - 1]}"


def is_of(family: Family, wanted: str) -> bool:
    """Read an id: return whether it is one of this family, with the configured prefix."""
    return wanted.startswith(dag_id(family, ""))


def is_made(family: Family) -> bool:
    """Return whether DAGs of this family are made: `[kstream] without_dags` names those that are not."""
    return family in _NEEDED or family not in _left_out()


def require_families() -> None:
    """Check `[kstream] without_dags`. Raises InvalidInput: when it has another word, or a family that is needed."""
    optional = [family for family in Family if family not in _NEEDED]
    if wrong := [word for word in _left_out() if word not in optional]:
        raise InvalidInput(f"[kstream] without_dags has {', '.join(wrong)}; allowed are {', '.join(optional)}")


def _left_out() -> list[str]:
    return settings.text("without_dags").replace(",", " ").split()


def fit_for_id(name: str) -> str:
    """Return the name with what no DAG's id may hold replaced, short enough for an id with a family."""
    return _NO_ID.sub("_", name)[: _LONGEST_ID - len("undeclared-")]


def stream_id(cluster: str, stream: str, before: str | None = None) -> str:
    """Return the id of a stream's DAG. A stream's name has no dot, so the last one ends the connection's id."""
    before = prefix() if before is None else before
    longest = _LONGEST_ID - len(before) - len("stream-.") - _LONGEST_NAME
    return dag_id(Family.STREAM, f"{fit_for_id(cluster)[:longest]}.{stream}", before)


def namesake(cluster: str, others: Iterable[str]) -> str:
    """Return the one of these connections whose DAGs have the ids that this one's would have, empty if it has its own.

    One whose id a DAG's id can hold as it is keeps it, whatever others are called.
    """
    ours = stream_id(cluster, "")
    alike = sorted((stream_id(other, "") != dag_id(Family.STREAM, f"{other}."), other) for other in others)
    first = next((other for _, other in alike if stream_id(other, "") == ours), cluster)
    return "" if first == cluster else first


def undeclared_id(cluster: str) -> str:
    return dag_id(Family.UNDECLARED, fit_for_id(cluster))


def control_id(cluster: str) -> str:
    return dag_id(Family.CONTROL, fit_for_id(cluster))


def fleet_id(cluster: str) -> str:
    return dag_id(Family.FLEET, fit_for_id(cluster))


def housekeeping_id(cluster: str) -> str:
    return dag_id(Family.HOUSEKEEPING, fit_for_id(cluster))


def doctor_id(cluster: str) -> str:
    return dag_id(Family.DOCTOR, fit_for_id(cluster))


def refused_id(name: str) -> str:
    return dag_id(Family.REFUSED, fit_for_id(name))


def leases_id(cluster: str) -> str:
    return dag_id(Family.LEASES, cluster)


def tickets_id(cluster: str) -> str:
    return dag_id(Family.TICKETS, cluster)


def keytabs_id(cluster: str) -> str:
    return dag_id(Family.KEYTABS, cluster)


def tokens_id(cluster: str) -> str:
    return dag_id(Family.TOKENS, cluster)
