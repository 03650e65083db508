"""What the check of a connection tells of what its declarations may use."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.connection import told_bound
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

MORE = replace(SPEC, name="clicks", conf={"spark.a": SecretRef("conn:clicks")})


def bounded(life: Life, allow: Allow) -> ClusterSession:
    return replace(life.run.session, cluster=replace(CLUSTER, allow=allow))


def test_without_a_bound_it_prints_the_one_that_streams_and_files_need(life: Life, served: None) -> None:
    life.begin()
    said = told_bound(life.run.session, [MORE])
    assert said.warns
    assert "`kstream connection allow` prints" in said.words
    assert said.words.endswith('{"allow": {"secrets": ["conn:clicks"], "local_files": ["/jobs/orders.jar"]}}')


def test_without_streams_it_suggests_no_bound_that_refuses_the_first(life: Life, served: None) -> None:
    life.hdfs.write(f"{CLUSTER.state_dir}/supervisors", "")
    said = told_bound(life.run.session)
    assert "`kstream connection allow SPEC.yaml` prints what a declaration needs; an empty allow refuses" in said.words
    assert '{"allow": {}}' not in said.words


def test_a_bound_too_long_for_a_table_is_left_to_the_command_that_prints_it(life: Life, served: None) -> None:
    many = [replace(SPEC, name=f"s{number}", application=f"/jobs/{number:0200}.jar") for number in range(30)]
    said = told_bound(life.run.session, many)
    assert said.words.endswith("`kstream connection allow` prints what the present streams need")


def test_a_bound_that_covers_the_declarations_is_no_warning(life: Life) -> None:
    said = told_bound(bounded(life, Allow(secrets=("conn:*",), local_files=("/jobs/",))), [MORE])
    assert (said.words, said.warns) == (
        "declarations may use what the connection has, and patterns: 1 of secrets, 1 of local_files",
        False,
    )


def test_a_declaration_that_goes_beyond_it_is_named(life: Life) -> None:
    said = told_bound(bounded(life, Allow(local_files=("/jobs/",))), [SPEC, MORE])
    assert said.warns
    assert said.words.startswith("clicks: connection simulated does not allow secrets: conn:clicks")
