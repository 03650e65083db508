"""`kstream`: the supervise functions for a person at a terminal."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import typer
from rich.console import Console
from rich.text import Text

from airflow_kstream.cli import connection, leases, streams, tickets, tokens
from airflow_kstream.model.errors import InvalidInput, KstreamError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Keeps streaming jobs alive on kerberized Hadoop.",
)
app.add_typer(streams.app, name="streams")
app.add_typer(leases.app, name="leases")
app.add_typer(tokens.app, name="tokens")
app.add_typer(tickets.app, name="tickets")
app.add_typer(connection.app, name="connection")

# For who develops: a checkout has them, the wheel does not.
if find_spec("airflow_kstream.minicluster"):
    from airflow_kstream.minicluster.cli import app as minicluster

    app.add_typer(minicluster, name="minicluster")
if find_spec("airflow_kstream.demo"):
    from airflow_kstream.demo.cli import demo

    app.command(name="demo")(demo)

_WRONG_INPUT, _FAILED = 2, 1


def main() -> None:
    """Exit 2 for input that is wrong, 1 for everything else that is ours, with one clear sentence on stderr."""
    try:
        app()
    except KstreamError as error:
        # As Text: nothing in an error is markup, nor an emoji's name.
        Console(stderr=True, soft_wrap=True).print(Text(f"kstream: {error}", style="red"))
        sys.exit(_WRONG_INPUT if isinstance(error, InvalidInput) else _FAILED)
