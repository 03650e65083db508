"""`kstream state ...`: housekeeping of the state_dir."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, is_file, opened
from airflow_kstream.cli.output import JsonOption, note, print_json, say
from airflow_kstream.clients.local.regular_files import declared_names
from airflow_kstream.policy.streams.housekeeping import cleaning_age
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.housekeeping import Housekeeper
from airflow_kstream.views.streams import lines_of_cleaning

app = typer.Typer(
    no_args_is_help=True, help="The state_dir of a connection: claims, orders and records of its streams."
)

OlderThan = Annotated[
    str,
    typer.Option("--older-than", metavar="DURATION", help="Only files unchanged for at least this long; 1d or more."),
]
Declarations = Annotated[
    Path | None,
    typer.Option(
        "--declarations",
        metavar="FOLDER",
        help="The folder with all declarations of streams: a stream with a file here counts as declared. Default: "
        "[kstream] streams_folder, if --cluster is an Airflow connection. Without it, no stream counts as gone.",
        exists=True,
        file_okay=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Remove it; without this option, only print what would be removed.")]
# Enough for a program that reads it.
_IN_JSON = 100_000


@app.callback()
def _group() -> None:
    """The state_dir of a connection: claims, orders and records of its streams."""


@app.command()
def clean(
    cluster_name: ClusterOption,
    older_than: OlderThan = "30d",
    declarations: Declarations = None,
    yes: Yes = False,
    as_json: JsonOption = False,
) -> None:
    """Print what may be removed from the state_dir, and why: dead writers' drafts, old history. With --yes, remove it.

    The folder of a stream that is gone is shown with the command that removes it. A stream is gone if nobody declares
    it, a person stopped it or it never ran, nothing of it lives in YARN, it owns no checkpoint, and nothing in its
    folder is younger. Records of this principal's lease recoveries stay for 90d at least. While the cluster is frozen,
    nothing is removed. Exit 1 if something could not be removed.
    """
    age, folder = cleaning_age("--older-than", older_than), declarations or _of_the_shipped_dags(cluster_name)
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        housekeeper = Housekeeper(session, declared_names(folder), age)
        report = housekeeper.clean(tell=note if as_json else say) if yes else housekeeper.plan()
    if as_json:
        print_json(report.to_json(_IN_JSON))
    else:
        for line in lines_of_cleaning(report):
            say(line)
    if report.failed:
        raise typer.Exit(1)


def _of_the_shipped_dags(cluster_name: str) -> Path | None:
    if is_file(cluster_name):
        return None
    # Imported late: Airflow takes seconds, which a command with a file need not spend.
    from airflow_kstream import settings

    return settings.folder("streams_folder")
