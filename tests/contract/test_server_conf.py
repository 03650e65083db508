"""Real servers tell the configuration that simulated ones tell in the doctor's unit tests."""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, EffectiveConf
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.examination import cluster_facts
from tests.simulated.doctor_facts import SERVED


@pytest.fixture(scope="module")
def facts(session: ClusterSession) -> ClusterFacts:
    return cluster_facts(session)


@pytest.mark.parametrize("server", SERVED)
def test_the_servers_tell_what_the_unit_tests_let_them_tell(facts: ClusterFacts, server: str) -> None:
    conf: EffectiveConf = getattr(facts.confs, server)
    told = {key: (one.value, one.origin) for key, one in conf.properties.items() if key in SERVED[server]}
    expected = {key: (value, origin) for key, (value, origin) in SERVED[server].items()}
    rules = "hadoop.security.auth_to_local"
    if rules in told:
        assert set(expected.pop(rules)[0].splitlines()) <= set(told.pop(rules)[0].splitlines())
    assert told == expected
