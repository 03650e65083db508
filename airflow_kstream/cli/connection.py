"""`kstream connection check`: does a connection work, step by step."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.doctor.connection import ProbeResult, check_connection

app = typer.Typer(no_args_is_help=True, help="Cluster connections.")


@app.callback()
def _group() -> None:
    """Cluster connections."""


@app.command()
def check(
    cluster: ClusterOption,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Try each step (names, TLS, ticket, SPNEGO, active servers, token lifetimes, state_dir). Exit 1 if one fails."""
    with opened(cluster) as found:
        steps = list(check_connection(found))
    if as_json:
        typer.echo(json.dumps([asdict(step) for step in steps], indent=1))
    else:
        Console().print(steps_table(steps))
    if not all(step.passed for step in steps):
        raise typer.Exit(1)


def steps_table(steps: list[ProbeResult]) -> Table:
    table = Table("step", "", Column("what was found", overflow="fold"))
    for step in steps:
        table.add_row(Text(step.name), Text(*_RESULTS[step.passed]), Text(printable(step.said)))
    return table


_RESULTS = {True: ("passed", "green"), False: ("failed", "red")}
