"""A dry run says every word, its reason and its source, and touches nothing."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.stream import KeytabCredentials
from airflow_kstream.supervise.streams.dry_run import explain
from tests.unit.simulated_yarn import TICKET_SPEC
from tests.unit.streams.test_spark_submission import CLUSTER, DEFAULTS


def test_each_word_has_its_source_and_ours_have_their_reasons() -> None:
    """The cluster's addresses lead nowhere: whatever asked a server would fail here."""
    spec = replace(
        TICKET_SPEC, credentials=KeytabCredentials("s@EXAMPLE.COM", "/s.keytab"), conf={"spark.executor.memory": "4g"}
    )
    lines = explain(CLUSTER, spec, DEFAULTS).splitlines()
    assert lines[0].startswith("# as s@EXAMPLE.COM")
    assert any("--principal s@EXAMPLE.COM --keytab /s.keytab  # spec: credentials" in line for line in lines)
    assert "  --conf spark.executor.memory=4g  # spec" in lines
    assert "  --queue streams  # connection spark_prod: queue" in lines
    assert any("spark.yarn.maxAppAttempts=1  # kstream: the supervisor owns restarts" in line for line in lines)


def test_a_secret_is_named_but_not_shown() -> None:
    shown = explain(CLUSTER, replace(TICKET_SPEC, conf={"spark.ssl.keyPassword": "hunter2"}), DEFAULTS)
    assert "hunter2" not in shown
    assert "spark.ssl.keyPassword=***" in shown
