"""Declarations of the tickets to keep fresh, as people write them; errors name the wrong field."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.declarations import RenewalPolicy, TicketDeclaration
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.tickets.managed import declaration_of, kept_tickets

WATCHER = Identity("watcher@R", keytab="/etc/watcher.keytab")
WRITTEN = """
principals:
  - {principal: etl@R, keytab: /etc/etl.keytab}
  - {principal: hdfs/nn@R, ticket_cache: "FILE:/run/hdfs", cache: /run/kept/hdfs}
folder: /run/tickets
renew_at: 0.6
alert_before: 2h
every: 5m
"""


def cluster(name: str = "prod") -> Cluster:
    return Cluster(name, ("http://rm:1",), ("http://nn:1",), "hdfs://nn", WATCHER, "/kstream")


def test_a_declaration_names_principals_caches_and_credentials() -> None:
    declaration = TicketDeclaration.from_yaml(WRITTEN)
    own, etl, hdfs = kept_tickets(cluster(), declaration)
    assert (own.identity, own.cache) == (WATCHER, Path("/run/tickets/prod/watcher@R.ccache"))
    assert (etl.identity, etl.cache) == (
        Identity("etl@R", keytab="/etc/etl.keytab"),
        Path("/run/tickets/prod/etl@R.ccache"),
    )
    assert (hdfs.identity, hdfs.cache) == (Identity("hdfs/nn@R", ticket_cache="FILE:/run/hdfs"), Path("/run/kept/hdfs"))
    assert declaration.policy == RenewalPolicy(0.6, timedelta(hours=2))
    assert declaration.every == timedelta(minutes=5)


def test_a_declaration_survives_plain_data() -> None:
    declaration = TicketDeclaration.from_yaml(WRITTEN)
    assert TicketDeclaration.from_mapping(declaration.to_mapping()) == declaration
    assert TicketDeclaration.from_mapping(TicketDeclaration().to_mapping()) == TicketDeclaration()


def test_the_connections_principal_is_the_default_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    (own,) = kept_tickets(cluster(), declaration_of("prod", None))
    assert own.cache == Path("/state/kstream/tickets/prod/watcher@R.ccache")


def test_the_connections_own_principal_may_be_given_another_cache() -> None:
    declaration = TicketDeclaration.from_mapping(
        {"principals": [{"principal": "watcher@R", "cache": "FILE:/run/mine"}]}
    )
    (own,) = kept_tickets(cluster(), declaration)
    assert (own.identity, own.cache) == (WATCHER, Path("/run/mine"))


@pytest.mark.parametrize(("name", "folder"), [("prod", "prod"), ("a/b", "a%2Fb"), ("..", "%2E%2E")])
def test_a_clusters_caches_are_in_one_folder_whatever_its_name(name: str, folder: str) -> None:
    (own,) = kept_tickets(cluster(name), TicketDeclaration(folder="/run"))
    assert own.cache.parent == Path("/run") / folder


def test_files_of_one_name_are_several_clusters_and_one_file_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("prod/cluster.yaml", "test/cluster.yaml", "./prod/../prod/cluster.yaml")
    prod, test, again = (
        kept_tickets(cluster(name), TicketDeclaration(folder="/run"))[0].cache.parent for name in names
    )
    assert prod != test
    assert prod == again
    assert prod.name.startswith("cluster-")


def test_the_declaration_is_found_by_the_clusters_name(tmp_path: Path) -> None:
    (tmp_path / "prod.yaml").write_text("renew_at: 0.7")
    assert declaration_of("prod", tmp_path).renew_at == declaration_of("/somewhere/prod.yaml", tmp_path).renew_at == 0.7
    assert declaration_of("other", tmp_path) == TicketDeclaration()
    (tmp_path / "prod.yaml").write_text("renew_at: 7")
    with pytest.raises(InvalidInput, match=r"prod\.yaml: renew_at is 7"):
        declaration_of("prod", tmp_path)


ETL = {"principal": "etl@R"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"principal": []}, "principal: there is no such field; the fields are principals, folder"),
        ({"principals": [{**ETL, "keytap": "/k"}]}, "keytap"),
        ({"principals": [{"keytab": "/k"}]}, r"principals\.0\.principal"),
        ({"principals": [{"principal": "etl"}]}, r"principals\.0\.principal is 'etl'; allowed is primary"),
        ({"principals": [{**ETL, "keytab": "etl.keytab"}]}, "keytab is 'etl.keytab'; allowed is an absolute path"),
        ({"principals": [{**ETL, "keytab": "/k", "ticket_cache": "/c"}]}, "both keytab and ticket_cache"),
        (
            {"principals": [{**ETL, "keytab": "/k", "cache": "KCM:0"}]},
            "cache is 'KCM:0'; allowed is the absolute path of a file",
        ),
        (
            {"principals": [{**ETL, "ticket_cache": "API:0"}]},
            "ticket_cache is 'API:0'; allowed is an absolute path, or FILE, DIR",
        ),
        ({"principals": [{**ETL, "keytab": "/k"}] * 2}, "etl@R more than once"),
        ({"principals": [{"principal": "etl\0@R", "keytab": "/k"}]}, r"'etl\\x00@R'; allowed is .* printable"),
        ({"principals": "etl@R"}, "^principals is 'etl@R'; allowed is a list"),
        ({"principals": ["etl@R"]}, r"principals\.0 is 'etl@R'; allowed is a mapping of fields"),
        ({"folder": "/run/\0"}, "folder is"),
        ({"folder": "tickets"}, "folder is 'tickets'"),
        ({"alert_before": "soon"}, "alert_before: 'soon' is not a duration"),
        ({"every": "0s"}, "every is '0s'; allowed is 10s to 366d"),
    ],
)
def test_a_wrong_field_is_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        TicketDeclaration.from_mapping(wrong)


def test_a_principal_that_is_not_the_connections_needs_something_to_log_in_with() -> None:
    with pytest.raises(InvalidInput, match="etl@R needs one of keytab or ticket_cache"):
        kept_tickets(cluster(), TicketDeclaration.from_mapping({"principals": [ETL]}))


def test_two_principals_do_not_share_a_cache() -> None:
    both = [{"principal": f"{name}@R", "keytab": "/k", "cache": "/run/one"} for name in ("a", "b")]
    with pytest.raises(InvalidInput, match="the cache /run/one more than once"):
        kept_tickets(cluster(), TicketDeclaration.from_mapping({"principals": both}))


def test_a_declaration_that_is_no_mapping_is_refused() -> None:
    for text in ("- a", "just words", "{"):
        with pytest.raises(InvalidInput):
            TicketDeclaration.from_yaml(text)
    assert TicketDeclaration.from_yaml("") == TicketDeclaration()
