"""`kstream connection check`: checks a connection, probe by probe; `allow`: what its declarations need; `env`: as
Airflow takes it from its environment."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, connection_of, is_file, opened
from airflow_kstream.cli.output import JsonOption, note, print_json, say, show
from airflow_kstream.cli.stream_options import read_spec
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.doctor.connection import check_connection
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.look.blocked import needed_by, needed_by_all
from airflow_kstream.views.doctor import command_lines, probes_table

SpecFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SPEC.yaml",
        help="Declarations whose users also create files in state_dir.",
        exists=True,
        dir_okay=False,
    ),
]
Make = Annotated[
    bool, typer.Option("--make", help="Make state_dir, or close it if it is open, as the connection's principal.")
]

NeedyFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SPEC.yaml", help="Declarations; without any, those of its streams.", exists=True, dir_okay=False
    ),
]

app = typer.Typer(no_args_is_help=True, help="Connections to clusters.")


@app.callback()
def _group() -> None:
    """Connections to clusters."""


@app.command()
def check(
    cluster_name: ClusterOption, spec_files: SpecFiles = None, make: Make = False, as_json: JsonOption = False
) -> None:
    """Check names, TLS, ticket, SPNEGO, active servers, token lifetimes and state_dir. Exit 1 if a probe fails.

    Of state_dir it tells who speaks for all of its streams and who may create in it, before it writes there. What
    somebody should change comes with the commands; they lock out nobody who uses it, by the declarations at hand, by
    what lies in it, and by what HDFS says to each whom this connection can act for.
    """
    declared = [read_spec(path) for path in spec_files or ()]
    with opened(cluster_name) as cluster:
        results = list(check_connection(cluster, declared, make=make))
    if as_json:
        print_json([result.to_json() for result in results])
    else:
        show(probes_table(results))
        for line in command_lines(results):
            say(line)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


@app.command()
def allow(cluster_name: ClusterOption, spec_files: NeedyFiles = None) -> None:
    """Print the exact `allow` that declarations need beside what the connection has, as JSON for its extra.

    Without files, those that its streams were submitted with last, as supervisors kept them: HDFS is asked, and nothing
    is changed. Paths are as they are on this host, once symlinks are followed.
    """
    with opened(cluster_name) as cluster:
        if spec_files:
            needed = needed_by(map(read_spec, spec_files), cluster)
        else:
            with open_session(cluster, cluster.watcher) as session:
                needed = needed_by_all(newest_claims(session), cluster)
    print_json(needed.to_json())


@app.command()
def env(cluster_name: ClusterOption) -> None:
    """Print the connection as a variable of Airflow's environment, to paste into a shell. No secret is in it.

    A file's connection gets the file's name as its id. What is secret is left out, and named: the keytab in base64 is
    the connection's `password`, and confs with secrets belong in its extra, where Airflow encrypts it.
    """
    fields, secret = connection_of(cluster_name).to_extra()
    name = Path(cluster_name).stem if is_file(cluster_name) else cluster_name
    conn_id = re.sub(r"\W", "_", name, flags=re.ASCII)
    connection = json.dumps({"conn_type": "kstream", "extra": fields})
    say(f"export AIRFLOW_CONN_{conn_id.upper()}={shlex.quote(connection)}")
    note(f"Airflow knows it as {conn_id}{'; left out, as secret: ' * bool(secret)}{', '.join(secret)}")
