"""`kstream tickets check`: do the keytabs still work, and which streams does a rotated one end?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.ticket_declarations import DeclarationOption, written_order
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.supervise.doctor.keytabs import check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace, only_principal
from airflow_kstream.views.keytabs import checks_table

_FAILED = 1


def check(
    cluster: ClusterOption,
    keytab: Annotated[
        Path | None,
        typer.Option(
            help="This keytab alone; else the connection's own, and those of its streams and its tickets' order."
        ),
    ] = None,
    principal: Annotated[
        str | None, typer.Option(help="Whose key in --keytab; may be left out where it holds one principal's.")
    ] = None,
    declaration: DeclarationOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Keytabs against the file system and the KDC: each failure with its remedy, and the streams that it will end.

    Exits with 1 when a keytab has an error. The KDC is asked by logging in; nothing is written.
    """
    place = _place(keytab, principal)
    ordered = written_order(cluster, declaration).declaration.principals
    also = [KeytabPlace(each.principal, each.keytab) for each in ordered if each.keytab]
    with opened(cluster) as found:
        checks = list(check_keytabs(found, place, also))
    if as_json:
        typer.echo(json.dumps([each.to_json() for each in checks], indent=1))
    else:
        Console().print(checks_table(checks))
    if any(each.failed for each in checks):
        raise typer.Exit(_FAILED)


def _place(keytab: Path | None, principal: str | None) -> KeytabPlace | None:
    if keytab is None:
        if principal:
            raise InvalidInput("--principal needs --keytab")
        return None
    return KeytabPlace(principal or _owner(keytab), str(keytab))


def _owner(keytab: Path) -> str:
    try:
        return only_principal(str(keytab))
    except CredentialError:
        # That it can't be read is a finding like any other.
        return ""
