"""`kstream minicluster ...`: up, down and status; its daemons one by one; Hadoop's own commands on it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from airflow_kstream.minicluster.clients import first_stream
from airflow_kstream.minicluster.config import DEFAULT_FEATURES, MOST_DATANODES, Feature, MiniclusterConfig
from airflow_kstream.minicluster.display import shown
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.kdc import USERS
from airflow_kstream.minicluster.minicluster import Minicluster
from airflow_kstream.minicluster.status import DaemonStatus
from airflow_kstream.model.durations import parse_duration

app = typer.Typer(
    help="A real kerberized Hadoop cluster on loopback.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)

_Root = Annotated[Path, typer.Option("--root", help="The minicluster's own folder.")]
_Features = Annotated[list[Feature] | None, typer.Option("--feature", help="A feature; several replace ha and kafka.")]
_Bare = Annotated[bool, typer.Option("--bare", help="No features: one NameNode, no Kafka.")]
_DataNodes = Annotated[int, typer.Option(min=1, max=MOST_DATANODES, help="How many DataNodes there are.")]
_Renew = Annotated[
    str,
    typer.Option(help="How long a delegation token lives without being renewed; a day by default, at most its life."),
]
_MaxLifetime = Annotated[str, typer.Option(help="How long a delegation token lives regardless of renewals.")]
_TicketLifetime = Annotated[str, typer.Option(help="How long a Kerberos ticket lives.")]
_TicketRenew = Annotated[str, typer.Option(help="How long renewals can extend a Kerberos ticket.")]
_Name = Annotated[str, typer.Argument(metavar="DAEMON", help="As `status` names it: kdc, nn1, datanode ...")]
_Principal = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Without its realm.")]
_Words = Annotated[list[str], typer.Argument(metavar="COMMAND", help="For instance: dfs -ls /")]
_As = Annotated[str, typer.Option("--as", help="The principal, without its realm.")]
_DEFAULT_ROOT = Path("kstream-minicluster")
_CLUSTER_FILE = "cluster.yaml"
_STREAM = "orders"
_DAY = timedelta(days=1)


@app.command()
def up(
    root: _Root = _DEFAULT_ROOT,
    feature: _Features = None,
    bare: _Bare = False,
    token_renew: _Renew = "",
    token_max_lifetime: _MaxLifetime = "7d",
    ticket_lifetime: _TicketLifetime = "10m",
    ticket_renew: _TicketRenew = "1h",
    datanodes: _DataNodes = 1,
) -> None:
    """Start a new minicluster; it keeps running after this command has ended.

    Everything that an earlier minicluster left in the folder is deleted, including its data.
    """
    longest = parse_duration(token_max_lifetime)
    features = frozenset() if bare else frozenset(feature or DEFAULT_FEATURES)
    plan = MiniclusterConfig(
        root,
        features,
        renew_interval=parse_duration(token_renew) if token_renew else min(_DAY, longest),
        max_lifetime=longest,
        ticket_lifetime=parse_duration(ticket_lifetime),
        ticket_renew=parse_duration(ticket_renew),
        datanodes=datanodes,
    )
    # SIGTERM ends it as Ctrl-C does: everything that was started goes down again.
    # Both by name: a process in the background of a script is born with SIGINT ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    console = Console()
    if Folders(plan.root).make_private():
        console.print(f"{plan.root} was open to other users: it is yours alone now.", soft_wrap=True, markup=False)
    with shown(console) as listener:
        minicluster = Minicluster.up(plan, listener)
    _print(console, minicluster.status())
    stream = first_stream(_STREAM, minicluster.principal("streamer"), minicluster.keytab("streamer"))
    for file, fields in ((_CLUSTER_FILE, minicluster.connection("supervisor")), (f"{_STREAM}.yaml", stream)):
        (minicluster.root / file).write_text(yaml.safe_dump(fields, sort_keys=False))
    for line in _about(minicluster):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


@app.command()
def down(root: _Root = _DEFAULT_ROOT) -> None:
    """Stop every process of the minicluster; its logs and data stay."""
    Minicluster.at(root).down()
    Console().print(f"The minicluster in {root} is down.", soft_wrap=True)


@app.command()
def status(root: _Root = _DEFAULT_ROOT) -> None:
    """Show each daemon and its answer; the exit code is 1 unless all daemons serve and one of each pair is active."""
    minicluster = Minicluster.at(root)
    daemons = minicluster.status()
    _print(Console(), daemons)
    raise typer.Exit(0 if all(daemon.serves for daemon in daemons) and _has_active(minicluster, daemons) else 1)


@app.command()
def kill(daemon: _Name, root: _Root = _DEFAULT_ROOT) -> None:
    """SIGKILL one daemon. `start` starts it again, with its data."""
    Minicluster.at(root).kill(daemon)


@app.command()
def start(daemon: _Name, root: _Root = _DEFAULT_ROOT) -> None:
    """Start a dead daemon again, and wait until it serves."""
    minicluster = Minicluster.at(root)
    minicluster.start(daemon)
    _has_active(minicluster, minicluster.status())


@app.command()
def pause(daemon: _Name, root: _Root = _DEFAULT_ROOT) -> None:
    """SIGSTOP one daemon: its connections stay open and nothing answers."""
    Minicluster.at(root).pause(daemon)


@app.command()
def resume(daemon: _Name, root: _Root = _DEFAULT_ROOT) -> None:
    """Resume a paused daemon."""
    Minicluster.at(root).resume(daemon)


@app.command()
def failover(root: _Root = _DEFAULT_ROOT) -> None:
    """Make the other NameNode the active one."""
    typer.echo(f"{Minicluster.at(root).failover()} is active")


@app.command()
def failover_rm(root: _Root = _DEFAULT_ROOT) -> None:
    """Make the other ResourceManager the active one; the first ends and starts again as the standby."""
    typer.echo(f"{Minicluster.at(root).failover_rm()} is active")


@app.command()
def rotate(principal: _Principal, root: _Root = _DEFAULT_ROOT) -> None:
    """Give a principal a new key, in the KDC and in its keytab."""
    Minicluster.at(root).rotate(principal)


# Hadoop's options have one dash: -h would be found in `-chown`.
@app.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
def hdfs(words: _Words, root: _Root = _DEFAULT_ROOT, as_: _As = "hdfs") -> None:
    """Run Hadoop's own `hdfs` (dfs, dfsadmin, haadmin, fsck, crypto or debug) as one of the principals."""
    done = Minicluster.at(root).hdfs(*words, as_=as_, stdin=sys.stdin.fileno() if sys.stdin else subprocess.DEVNULL)
    typer.echo(done.stdout, nl=False)
    typer.echo(done.stderr, nl=False, err=True)
    raise typer.Exit(done.returncode)


def _about(minicluster: Minicluster) -> Iterator[str]:
    yield f"principals: {', '.join(f'{name}@{minicluster.realm}' for name in USERS)}"
    yield f"keytabs: {minicluster.keytab('NAME')}"
    yield "hdfs is HDFS's superuser, gateway may impersonate others, and watcher is an ordinary user"
    yield "state_dir /kstream is supervisor's; of the others, streamer and gateway may create folders in it"
    yield f"on HDFS, streamer is {getuser()}, with the home folder /user/{getuser()}"
    yield f"as supervisor: kstream ... --cluster {minicluster.root / _CLUSTER_FILE}"
    yield f"the first stream of the documentation, as it runs here: {minicluster.root / _STREAM}.yaml"
    if Feature.HTTPFS in minicluster.plan.features:
        yield f"HttpFS: {minicluster.httpfs}"
    yield f"export KRB5_CONFIG={minicluster.krb5_conf} HADOOP_CONF_DIR={minicluster.conf_dir}"


def _has_active(minicluster: Minicluster, daemons: list[DaemonStatus]) -> bool:
    """Return True if one of each pair of servers is active; if not, print what to do."""
    sentences = minicluster.without_active(daemons)
    for sentence in sentences:
        typer.echo(sentence, err=True)
    return not sentences


def _print(console: Console, daemons: list[DaemonStatus]) -> None:
    table = Table("daemon", "pid", "state", "address", "answer", box=None)
    for daemon in daemons:
        table.add_row(daemon.name, str(daemon.pid or ""), daemon.state, daemon.address, escape(daemon.answer))
    console.print(table)
