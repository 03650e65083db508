"""The name of the minicluster's Kafka cluster goes through a command line."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.minicluster.kafka import cluster_id


@given(st.uuids())
def test_a_cluster_id_is_never_taken_for_an_option(identity: UUID) -> None:
    """One in 64 UUIDs begins with a dash in URL-safe base64."""
    assert not cluster_id(identity).startswith("-")
    assert len(cluster_id(identity)) == 22
