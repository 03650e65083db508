"""`kstream triage`: the cause of a failure, from logs."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from airflow_kstream.cli.clusters import CLUSTER_OPTION, opened
from airflow_kstream.cli.output import JsonOption, print_json, say
from airflow_kstream.model.diagnosis import Diagnosis, Outcome
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_application_id
from airflow_kstream.model.signature import Catalogue
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.triage.application import triage_application
from airflow_kstream.supervise.triage.catalogue import catalogue_with
from airflow_kstream.supervise.triage.scan import triage_path
from airflow_kstream.views.triage import diagnosis_lines

Target = Annotated[
    str, typer.Argument(metavar="PATH", help="A log, or a folder of logs; .gz and the like are unpacked.")
]
Signatures = Annotated[
    list[Path] | None,
    typer.Option("--signatures", help="A YAML file with signatures of your own. Can be repeated."),
]
TimeZone = Annotated[
    str | None,
    typer.Option("--time-zone", help="The zone of logs that don't say theirs, such as Europe/Berlin."),
]

OptionalCluster = Annotated[str | None, CLUSTER_OPTION]

_UNKNOWN = 1


def triage(
    target: Target,
    cluster_name: OptionalCluster = None,
    signatures: Signatures = None,
    time_zone: TimeZone = None,
    as_json: JsonOption = False,
) -> None:
    """Name the one cause in the logs of an application: with its evidence, the timeline and the remedy.

    Exit 1 if something failed and no signature explains it; the report shows its new lines then.
    """
    catalogue, zone = catalogue_with(signatures or ()), _zone(time_zone)
    diagnosis = (
        _of_application(target, cluster_name, catalogue, zone)
        if is_application_id(target)
        else triage_path(Path(target), catalogue, zone)
    )
    if as_json:
        print_json(diagnosis.to_json())
    else:
        for line in diagnosis_lines(diagnosis):
            say(line)
    if diagnosis.outcome is Outcome.UNKNOWN:
        raise typer.Exit(_UNKNOWN)


def _of_application(target: str, cluster_name: str | None, catalogue: Catalogue, zone: tzinfo | None) -> Diagnosis:
    if not cluster_name:
        raise InvalidInput(f"{target} is an application, and no --cluster says of which cluster")
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        return triage_application(session, target, catalogue, zone)


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"--time-zone is {name!r}; allowed is a name such as Europe/Berlin") from None
