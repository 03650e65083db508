"""The ids in the ResourceManager's RPC, beyond those that a cluster in tests has."""

from __future__ import annotations

import pytest

from airflow_kstream.clients.yarn_rpc import _application, _container
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.protobuf import Message


def test_a_container_of_a_restarted_resourcemanager_has_its_epoch_above_its_number() -> None:
    """ContainerId.java: the lower 40 bits are the container's own number."""
    container = Message(_container("container_e17_1410901177871_0012_02_000005"))
    attempt = Message(container.data(2))
    application = Message(attempt.data(1))
    assert (application.number(1), application.number(2), attempt.number(2)) == (12, 1410901177871, 2)
    assert container.number(3) == 17 * 2**40 + 5
    assert Message(_container("container_1410901177871_0012_02_000005")).number(3) == 5


@pytest.mark.parametrize("text", ["", "application_1", "application_x_1", "container_1_2_3", "job_1_1"])
def test_what_is_no_id_is_refused_before_anything_is_sent(text: str) -> None:
    for encode in (_application, _container):
        with pytest.raises(InvalidInput, match="is not a"):
            encode(text)
