"""`kstream tickets check`: finds keytabs that no longer work, and the streams that a rotated one will end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import JsonOption, print_json, show
from airflow_kstream.cli.ticket_declarations import DeclarationOption, written_declaration
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.supervise.doctor.keytabs import check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace, only_principal
from airflow_kstream.views.keytabs import checks_table

_FAILED = 1

KeytabOption = Annotated[
    Path | None,
    typer.Option(
        help="Check this keytab only; without it the connection's own, those of its streams and of the declaration."
    ),
]
PrincipalOption = Annotated[
    str | None,
    typer.Option(help="The principal whose key in --keytab is checked; not needed if the file has only one."),
]


def check(
    cluster_name: ClusterOption,
    keytab: KeytabOption = None,
    principal: PrincipalOption = None,
    declaration: DeclarationOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check keytabs against the file system and the KDC, and report how to fix each problem.

    Exit 1 if a keytab has an error. The check logs in to the KDC and writes nothing. Running streams that will lose
    their tokens are named, with the time.
    """
    place = _place(keytab, principal)
    principals = written_declaration(cluster_name, declaration).declaration.principals
    also = [KeytabPlace(declared.principal, declared.keytab) for declared in principals if declared.keytab]
    with opened(cluster_name) as cluster:
        checks = list(check_keytabs(cluster, place, also))
    if as_json:
        print_json([check.to_json() for check in checks])
    else:
        show(checks_table(checks))
    if any(check.failed for check in checks):
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
        # A keytab that can't be read is a finding like any other.
        return ""
