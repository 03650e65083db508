"""Pairs of servers, one of which should be active: what a person hears when none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.minicluster.config import Feature, MiniclusterConfig
from airflow_kstream.minicluster.daemons import port_names
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.status import DaemonStatus, without_active

ROOT = Path("/clusters/mine")
BOTH = frozenset({Feature.HA, Feature.RM_HA})
NO_NAMENODE = (
    "No NameNode is active, so clients of HDFS wait in vain. "
    "`kstream minicluster failover --root /clusters/mine` makes one active."
)
NO_RESOURCEMANAGER = "No ResourceManager is active. They elect one in ZooKeeper 10 s after the active one was lost."


def sentences(features: frozenset[Feature], **answers: str | None) -> list[str]:
    """Return what is said of daemons with these answers; None is that of a daemon that does not serve."""
    site = Site(MiniclusterConfig(ROOT, features), dict.fromkeys(port_names(), 1))
    status = [
        DaemonStatus(name, 1, "running", "localhost:1", answer or "refused", answer is not None)
        for name, answer in answers.items()
    ]
    return list(without_active(site, status))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"nn1": "active", "nn2": "standby"}, []),
        ({"nn1": "standby", "nn2": "standby"}, [NO_NAMENODE]),
        ({"nn1": "standby", "nn2": None}, [NO_NAMENODE]),
        ({"nn1": None, "nn2": None}, []),
        ({"nn1": None, "nn2": "active"}, []),
        ({"rm1": "standby, cluster 17", "rm2": "active, cluster 18"}, []),
        ({"rm1": "standby, cluster 17", "rm2": None}, [NO_RESOURCEMANAGER]),
        ({"nn1": "standby", "nn2": "standby", "rm1": "standby, cluster 17"}, [NO_NAMENODE, NO_RESOURCEMANAGER]),
    ],
)
def test_a_pair_of_standbys_is_named_with_what_makes_one_active(
    answers: dict[str, str | None], said: list[str]
) -> None:
    assert sentences(BOTH, **answers) == said


def test_a_single_server_is_nobodys_standby() -> None:
    assert sentences(frozenset(), nn1="standby", resourcemanager="standby, cluster 17") == []
