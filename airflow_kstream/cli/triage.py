"""`kstream triage`: the cause of a failure, from logs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from airflow_kstream.cli.clusters import CLUSTER_OPTION, opened
from airflow_kstream.cli.output import JsonOption, print_json, say
from airflow_kstream.clients.local.log_files import files_below
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.model.diagnosis import Diagnosis, Outcome
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_application_id
from airflow_kstream.model.signature import Catalogue
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.triage.application import triage_application
from airflow_kstream.supervise.triage.catalogue import catalogue_with
from airflow_kstream.supervise.triage.scan import triage_path
from airflow_kstream.supervise.triage.spark import SparkRun, application_logs, triage_with_spark
from airflow_kstream.views.triage import diagnosis_lines
from airflow_kstream.views.triage_page import diagnosis_page

Target = Annotated[
    str,
    typer.Argument(
        metavar="APPLICATION|PATH",
        help="An application of --cluster; or a log or a folder of logs of this host, compressed or not.",
    ),
]
OptionalCluster = Annotated[str | None, CLUSTER_OPTION]
Signatures = Annotated[
    list[Path] | None,
    typer.Option("--signatures", help="A YAML file with signatures of your own. Can be repeated."),
]
TimeZone = Annotated[
    str | None,
    typer.Option("--time-zone", help="The zone of logs that don't say theirs, such as Europe/Berlin."),
]
Spark = Annotated[
    str | None,
    typer.Option("--spark", metavar="MASTER", help="Scan with Spark: local[*], or yarn for the logs of a cluster."),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", help="Write a page with the timeline drawn, too. Nothing may be at this path."),
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
    look = _Look(catalogue_with(signatures or ()), _zone(time_zone), SparkRun(spark) if spark else None)
    diagnosis = look.of_application(target, cluster_name) if is_application_id(target) else look.of_path(target)
    if html:
        write_private(html, diagnosis_page(diagnosis, target).encode())
    if as_json:
        print_json(diagnosis.to_json())
    else:
        for line in diagnosis_lines(diagnosis):
            say(line)
    if diagnosis.outcome is Outcome.UNKNOWN:
        raise typer.Exit(_UNKNOWN)


@dataclass(frozen=True)
class _Look:
    catalogue: Catalogue
    zone: tzinfo | None
    spark: SparkRun | None

    def of_path(self, target: str) -> Diagnosis:
        path = Path(target)
        if self.spark is None:
            return triage_path(path, self.catalogue, self.zone)
        # Refuse what is not there before Spark takes seconds to start.
        files_below(path)
        return triage_with_spark([path.resolve().as_uri()], self.catalogue, self.spark, zone=self.zone)

    def of_application(self, target: str, cluster_name: str | None) -> Diagnosis:
        if not cluster_name:
            raise InvalidInput(f"{target} is an application, and no --cluster says of which cluster")
        with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
            if self.spark is None:
                return triage_application(session, target, self.catalogue, self.zone)
            logs = application_logs(session, target)
            return triage_with_spark(logs, self.catalogue, self.spark, session, self.zone)


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"--time-zone is {name!r}; allowed is a name such as Europe/Berlin") from None
