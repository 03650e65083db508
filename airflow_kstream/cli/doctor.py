"""`kstream doctor`: what will go wrong on this cluster, for which streams, from when on, and the fix."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import JsonOption, print_json, show
from airflow_kstream.cli.stream_options import SparkSubmit, checked_application, checked_name
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import Baseline, DoctorReport
from airflow_kstream.policy.doctor.checks import CHECKS
from airflow_kstream.policy.doctor.news import without_accepted
from airflow_kstream.supervise.doctor.examination import Subjects, examine_cluster
from airflow_kstream.views.doctor import checks_table, findings_table, lines_of_report

_FAILED = 1
_HTML_WIDTH = 200

StreamOption = Annotated[
    str, typer.Option("--stream", metavar="NAME", callback=checked_name, help="Only this stream, and the cluster.")
]
ApplicationOption = Annotated[
    str,
    typer.Option(
        "--application-id",
        metavar="APPLICATION",
        callback=checked_application,
        help="Only this YARN application, also one that kstream does not manage, and the cluster.",
    ),
]
HtmlOption = Annotated[bool, typer.Option("--html", help="Print an HTML page.")]
BaselineOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A YAML file of accepted findings: who accepted each, why, and until when."),
]
ListOption = Annotated[bool, typer.Option("--list", help="Print the checks and their sources; asks no server.")]


def doctor(
    cluster_name: ClusterOption = "",
    stream: StreamOption = "",
    application_id: ApplicationOption = "",
    baseline: BaselineOption = None,
    spark_submit: SparkSubmit = "",
    as_json: JsonOption = False,
    as_html: HtmlOption = False,
    only_list: ListOption = False,
) -> None:
    """Examine the cluster, this host and the streams, and report what will go wrong, when, and how to prevent it.

    Reads the effective configuration and versions of the servers, krb5.conf, tickets, keytabs, the Spark client and the
    streams' claims. It changes nothing, and concludes nothing from what it could not ask: that is shown with the reason
    and the missing right. Exit 1 if an error or a warning is found that nobody accepted, or if neither HDFS nor YARN
    tells its configuration.
    """
    if only_list:
        show(checks_table(CHECKS))
        return
    _require_one_way(cluster_name, stream, application_id, as_json=as_json, as_html=as_html)
    accepted = _baseline(baseline)
    with opened(cluster_name) as cluster:
        report = examine_cluster(cluster, Subjects(stream, application_id), spark_submit)
    report = without_accepted(report, accepted, datetime.now(UTC).date())
    if as_json:
        print_json(report.to_json())
    elif as_html:
        print(_html(report))
    else:
        _show(report)
    if report.failed:
        raise typer.Exit(_FAILED)


def _show(report: DoctorReport) -> None:
    if report.findings:
        show(findings_table(report.findings))
    for line in lines_of_report(report):
        show(line)


def _html(report: DoctorReport) -> str:
    console = Console(file=StringIO(), width=_HTML_WIDTH, record=True)
    console.print(findings_table(report.findings))
    for line in lines_of_report(report):
        console.print(line)
    return console.export_html()


def _require_one_way(cluster: str, stream: str, application_id: str, *, as_json: bool, as_html: bool) -> None:
    if not cluster:
        raise InvalidInput("--cluster is missing, and KSTREAM_CLUSTER is not set; only --list needs none")
    if stream and application_id:
        raise InvalidInput("--stream and --application-id are both given; allowed is one of them")
    if as_json and as_html:
        raise InvalidInput("--json and --html are both given; allowed is one of them")


def _baseline(path: Path | None) -> Baseline:
    if path is None:
        return Baseline()
    text = read_text(path)
    try:
        return Baseline.from_yaml(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}") from None
