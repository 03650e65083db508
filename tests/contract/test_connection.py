"""All servers of a connection, asked step by step as `kstream doctor` asks them first."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.connection import cluster_of
from airflow_kstream.supervise.doctor.connection import ProbeOutcome, check_connection
from tests.live.streams import cluster, fields


def test_every_step_of_a_good_connection_passes(minicluster: Minicluster) -> None:
    """Also with the keytab in the connection."""
    keytab = b64encode(minicluster.keytab("streamer").read_bytes()).decode()
    with cluster_of("held", fields(minicluster, keytab_path=None, keytab=keytab, allow={})) as held:
        steps = list(check_connection(held))
    assert [step.name for step in steps if not step.passed] == []
    assert len(steps) == 13
    assert [(step.name, step.detail, step.commands) for step in steps if step.outcome is ProbeOutcome.WARNING] == []


def test_a_connection_with_a_wrong_keytab_fails_step_by_step_and_in_words(minicluster: Minicluster) -> None:
    keytab = str(minicluster.keytab("watcher"))
    with cluster(minicluster) as good:
        wrong = replace(good, watcher=Identity(minicluster.principal("streamer"), keytab=keytab))
        steps = {step.name: step for step in check_connection(wrong)}
    assert steps["resolve"].passed
    assert not steps["ticket"].passed
    assert keytab in steps["ticket"].detail
    assert not steps["active NameNode"].passed
