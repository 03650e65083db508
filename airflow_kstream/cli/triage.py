"""`kstream triage`: the cause of a failure, from logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import CLUSTER_OPTION, opened
from airflow_kstream.cli.output import JsonOption, print_json, say
from airflow_kstream.cli.stream_options import checked_target
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_application_id
from airflow_kstream.model.logs.diagnosis import Diagnosis, DiagnosisOutcome
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.pulse.triage import triage_generation
from airflow_kstream.supervise.triage.look import TriageLook
from airflow_kstream.views.triage import diagnosis_lines, diagnosis_page

Target = Annotated[
    str,
    typer.Argument(
        metavar="APPLICATION|PATH",
        callback=checked_target,
        help="An application of --cluster; or a log or a folder of logs of this host, compressed or not.",
    ),
]


def _not_there(path: Path | None) -> Path | None:
    """Return the path. Raises InvalidInput: when something is there, which a page must not replace."""
    if path is not None and path.exists():
        raise InvalidInput(f"--html: {path} exists already")
    return path


OptionalCluster = Annotated[str | None, CLUSTER_OPTION]
Signatures = Annotated[
    list[Path] | None,
    typer.Option("--signatures", metavar="FILE", help="A YAML file with signatures of your own. Can be repeated."),
]
TimeZone = Annotated[
    str | None,
    typer.Option("--time-zone", help="The time zone of logs that don't name one, such as Europe/Berlin."),
]
Spark = Annotated[
    str | None,
    typer.Option("--spark", metavar="MASTER", help="Scan with Spark: local[*], or yarn for the logs of a cluster."),
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        callback=_not_there,
        help="Also write a page with the timeline drawn. The path must not exist yet.",
    ),
]

_UNKNOWN = 1


def triage(
    target: Target,
    cluster_name: OptionalCluster = None,
    signatures: Signatures = None,
    time_zone: TimeZone = None,
    spark: Spark = None,
    html: Html = None,
    as_json: JsonOption = False,
) -> None:
    """Name the one cause in the logs of an application: with its evidence, the timeline and the remedy.

    Exit 1 if something failed and no signature explains it; the report shows its new lines then.
    """
    look = TriageLook.of(signatures or (), time_zone, spark)
    diagnosis = _of_application(look, target, cluster_name) if is_application_id(target) else look.of_path(target)
    if html:
        write_private(html, diagnosis_page(diagnosis, target).encode())
    if as_json:
        print_json(diagnosis.to_json())
    else:
        for line in diagnosis_lines(diagnosis):
            say(line)
    if diagnosis.outcome is DiagnosisOutcome.UNKNOWN:
        raise typer.Exit(_UNKNOWN)


def _of_application(look: TriageLook, application: str, cluster_name: str | None) -> Diagnosis:
    if not cluster_name:
        raise InvalidInput(f"{application} is an application, and no --cluster says of which cluster")
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        return triage_generation(session, application, look)
