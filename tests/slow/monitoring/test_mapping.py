"""What the exporter makes of the lines that Airflow's StatsD client sends, with InfluxDB's tags and without any."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import requests

from airflow_kstream.monitoring import NAMES, text_of
from tests.live.streams import await_that
from tests.slow.monitoring.servers import monitoring

pytestmark = pytest.mark.prometheus

LINES = (
    "airflow.kstream.pulse:0|g",
    "airflow.kstream.pulse,cluster=prod,stream=orders:0|g",
    "airflow.kstream.prod.orders.pulse:0|g",
    "airflow.kstream.test.orders.pulse:5|g",
    "airflow.kstream.prod.cluster.pulse:1|g",
    "airflow.kstream.cluster.unreachable,cluster=prod:1|g",
    "airflow.kstream.prod.cluster.unreachable:1|g",
    "airflow.kstream.restarts,cluster=prod,stream=orders:1|c",
    "airflow.kstream.prod.orders.restarts:1|c",
    "airflow.kstream.prod.orders.horizon_seconds:0|g\nairflow.kstream.prod.orders.horizon_seconds:-60.5|g",
    "airflow.kstream.prod./data/in.lease.stuck_files_left_alone:2|g",
    "airflow.kstream.prod.etl_EXAMPLE_COM.ticket.remaining:36000|g",
    "airflow.kstream.prod.orders.event.stalled:1|g",
)
SEEN = {
    'kstream_pulse{cluster="prod",stream="orders"} 0',
    'kstream_pulse{cluster="test",stream="orders"} 5',
    'kstream_pulse{cluster="prod",stream="cluster"} 1',
    'kstream_cluster_unreachable{cluster="prod"} 1',
    'kstream_restarts_total{cluster="prod",stream="orders"} 1',
    'kstream_horizon_seconds{cluster="prod",stream="orders"} -60.5',
    'kstream_lease_stuck_files_left_alone{cluster="prod",path="/data/in"} 2',
    'kstream_ticket_remaining{cluster="prod",principal="etl_EXAMPLE_COM"} 36000',
    'kstream_event{cluster="prod",kind="stalled",stream="orders"} 1',
}


def test_each_value_is_one_series_whichever_tags_are_sent(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(text_of(name))
    with monitoring(tmp_path, tmp_path) as watched, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for line in LINES:
            sender.sendto(line.encode(), ("127.0.0.1", watched.statsd_port))

        def series() -> set[str]:
            text = requests.get(f"{watched.exporter}/metrics", timeout=60).text
            return {line for line in text.splitlines() if "kstream" in line and not line.startswith("#")}

        await_that(lambda: len(series()) >= len(SEEN), "the exporter has seen all", 60)
        assert series() == SEEN
