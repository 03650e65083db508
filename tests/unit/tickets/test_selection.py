"""One ticket of a declaration, or a stranger's: chosen by principal, keytab and cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.declarations import TicketDeclaration
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.tickets.managed import TicketSelection, select_one, selected
from tests.unit.tickets.test_declaration import WATCHER, cluster

ORDER = TicketDeclaration.from_mapping({"principals": [{"principal": "etl@R", "keytab": "/etl"}], "folder": "/run"})


def test_without_any_field_all_declared_tickets_are_selected() -> None:
    principals = [ticket.principal for ticket in selected(cluster(), ORDER, TicketSelection())]
    assert principals == [WATCHER.principal, "etl@R"]


def test_a_cache_without_a_principal_belongs_to_the_connections_own() -> None:
    (own,) = selected(cluster(), ORDER, TicketSelection(cache="FILE:/run/mine"))
    assert (own.identity, own.cache, own.in_our_folder) == (WATCHER, Path("/run/mine"), False)


def test_a_stranger_needs_a_keytab_or_a_cache() -> None:
    with pytest.raises(InvalidInput, match=r"me@R is not among watcher@R, etl@R, .*; give its keytab or cache"):
        select_one(cluster(), ORDER, TicketSelection("me@R"))
    stranger = select_one(cluster(), ORDER, TicketSelection("me@R", keytab="/me"))
    assert stranger.identity == Identity("me@R", keytab="/me")
    assert stranger.cache.parent == Path("/run/prod")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"principal": "etl"}, "principal is 'etl'; allowed is primary"),
        ({"keytab": "here"}, "keytab is 'here'; allowed is an absolute path"),
        ({"cache": "KCM:0"}, "cache is 'KCM:0'; allowed is an absolute path"),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused_by_name(fields: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        TicketSelection(**fields)
