"""The name of the minicluster's Kafka cluster goes through a command line."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.minicluster.kafka import cluster_id


@given(st.uuids())
def test_a_cluster_s_name_is_never_taken_for_an_option(identity: UUID) -> None:
    """Of all 16 bytes one in sixty-four begins with a dash in URL-safe base64."""
    assert not cluster_id(identity).startswith("-")
    assert len(cluster_id(identity)) == 22


def test_the_name_that_once_kept_a_broker_from_starting() -> None:
    assert not cluster_id(UUID(int=0xF8 << 120)).startswith("-")
