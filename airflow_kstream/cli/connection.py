"""`kstream connection check`: checks a connection, probe by probe."""

from __future__ import annotations

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import JsonOption, print_json, show
from airflow_kstream.supervise.doctor.connection import check_connection
from airflow_kstream.views.connection import probes_table

app = typer.Typer(no_args_is_help=True, help="Connections to clusters.")


@app.callback()
def _group() -> None:
    """Connections to clusters."""


@app.command()
def check(cluster_name: ClusterOption, as_json: JsonOption = False) -> None:
    """Check names, TLS, ticket, SPNEGO, active servers, token lifetimes and state_dir. Exit 1 if a probe fails."""
    with opened(cluster_name) as cluster:
        results = list(check_connection(cluster))
    if as_json:
        print_json([result.to_json() for result in results])
    else:
        show(probes_table(results))
    if not all(result.passed for result in results):
        raise typer.Exit(1)
