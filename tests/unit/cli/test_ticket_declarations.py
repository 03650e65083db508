"""Declarations on the command line of `kstream tickets`: found, and refused with the name of their file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.commands import TicketCommands


@pytest.fixture
def kstream(cluster_file: Path) -> TicketCommands:
    return TicketCommands(cluster_file.parent)


def test_a_missing_field_of_a_declaration_is_reported_with_its_file(kstream: TicketCommands) -> None:
    kstream.declaration({"principal": "gateway@EXAMPLE.COM"})
    refused = kstream.on_cluster("renew")
    assert refused.code == 2
    assert f"{kstream.folder}/order.yaml: gateway@EXAMPLE.COM needs one of keytab or ticket_cache" in refused.err


def test_a_folder_of_declarations_is_searched_for_the_cluster(kstream: TicketCommands) -> None:
    declarations = kstream.folder / "declarations"
    declarations.mkdir()
    keytab = {"principal": "gateway@EXAMPLE.COM", "keytab": "/nope"}
    (declarations / "cluster.yaml").write_text(yaml.safe_dump({"principals": [keytab]}))
    listed = kstream.on_cluster("list", "--json", declaration=os.fspath(declarations))
    assert [row["principal"] for row in listed.data] == ["watcher@EXAMPLE.COM", "gateway@EXAMPLE.COM"]


def test_nothing_in_an_error_is_an_emoji(kstream: TicketCommands) -> None:
    assert "read the ticket cache MEMORY:x:" in kstream.run("show", "MEMORY:x").err
