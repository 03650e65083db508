"""`kstream stand up | down | status`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.stand.display import shown
from airflow_kstream.stand.plan import DEFAULT_FEATURES, Feature, StandPlan
from airflow_kstream.stand.stand import DaemonStatus, Stand

app = typer.Typer(
    help="A real kerberized Hadoop cluster on loopback.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)

_Root = Annotated[Path, typer.Option("--root", help="The stand's own folder.")]
_Features = Annotated[list[Feature] | None, typer.Option("--feature", help="What it has; ha and kafka by default.")]
_Bare = Annotated[bool, typer.Option("--bare", help="None of the features: one NameNode, no Kafka.")]
_Renew = Annotated[str, typer.Option(help="How long a delegation token lives without being renewed.")]
_MaxLifetime = Annotated[str, typer.Option(help="How long a delegation token lives however often it is renewed.")]
_DEFAULT_ROOT = Path("kstream-stand")


@app.command()
def up(
    root: _Root = _DEFAULT_ROOT,
    feature: _Features = None,
    bare: _Bare = False,
    token_renew: _Renew = "1d",
    token_max_lifetime: _MaxLifetime = "7d",
) -> None:
    """Start a stand; it keeps running after this command has ended."""
    features = frozenset() if bare else frozenset(feature or DEFAULT_FEATURES)
    plan = StandPlan(root, features, parse_duration(token_renew), parse_duration(token_max_lifetime))
    # Ended like by Ctrl-C: what was started goes down again.
    # Both by name: a process in the background of a script is born with SIGINT ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    console = Console()
    with shown(console) as listener:
        stand = Stand.up(plan, listener)
    _print(console, stand.status())
    console.print(f"export KRB5_CONFIG={stand.krb5_conf} HADOOP_CONF_DIR={stand.conf_dir}", soft_wrap=True)


@app.command()
def down(root: _Root = _DEFAULT_ROOT) -> None:
    """End every process of the stand; its logs and data stay."""
    Stand.at(root).down()
    Console().print(f"The stand in {root} is down.", soft_wrap=True)


@app.command()
def status(root: _Root = _DEFAULT_ROOT) -> None:
    """What runs and what it answers; the exit code is 1 unless all of it serves."""
    daemons = Stand.at(root).status()
    _print(Console(), daemons)
    raise typer.Exit(0 if all(daemon.serves for daemon in daemons) else 1)


def _print(console: Console, daemons: list[DaemonStatus]) -> None:
    table = Table("daemon", "pid", "state", "address", "answer", box=None)
    for daemon in daemons:
        table.add_row(daemon.name, str(daemon.pid or ""), daemon.state, daemon.address, escape(daemon.answer))
    console.print(table)
