"""The name of the minicluster's Kafka cluster goes through a command line."""

from __future__ import annotations

from uuid import UUID

from airflow_kstream.minicluster.kafka import cluster_id


def test_a_uuid_that_encodes_to_a_leading_dash_gets_another_cluster_id() -> None:
    assert not cluster_id(UUID(int=0xF8 << 120)).startswith("-")
