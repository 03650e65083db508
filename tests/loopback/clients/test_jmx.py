"""What a NameNode's /jmx proves: whether it knows the blocks of all live DataNodes."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from airflow_kstream.clients.hdfs.jmx import NameNodeJmx
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import said, serving


@pytest.mark.parametrize(
    ("minutes", "up", "all_reported"),
    [
        ([0, 1], 179_999, True),
        # Whole minutes on both sides: it may have been a moment before the start.
        ([0, 1], 119_999, False),
        # Never, which counts from the start of its host.
        ([0, 9_000], 600_000, False),
        ([], 600_000, False),
    ],
)
def test_a_report_counts_only_if_it_came_after_the_start_for_certain(
    minutes: list[int], up: int, all_reported: bool
) -> None:
    live = {f"dn{number}:9866": {"lastBlockReport": age} for number, age in enumerate(minutes)}
    script = {
        "LiveNodes": said({"beans": [{"LiveNodes": json.dumps(live)}]}),
        "Uptime": said({"beans": [{"Uptime": up}]}),
    }
    with serving(script) as server:
        watcher = Identity("watcher@EXAMPLE.COM", keytab="/no/such/keytab")
        with closing(NameNodeJmx((server.address,), watcher, Tls())) as jmx:
            assert jmx.all_reported(server.address) is all_reported
