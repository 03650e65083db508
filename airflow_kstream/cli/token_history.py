"""`kstream tokens history`: the lives of delegation tokens, from the logs of a ResourceManager."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.output import JsonOption, print_json, say, show
from airflow_kstream.cli.triage import Html, TimeZone
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.supervise.triage.look import zone_of
from airflow_kstream.supervise.triage.token_history import histories_in
from airflow_kstream.views.token_history import events_table, histories_page, history_lines

Logs = Annotated[
    Path, typer.Argument(metavar="LOGS", help="A ResourceManager's or NameNode's log, or a folder of them.")
]
Application = Annotated[str | None, typer.Option("--application", help="Only the tokens of this application.")]


def history(
    logs: Logs,
    application: Application = None,
    time_zone: TimeZone = None,
    html: Html = None,
    as_json: JsonOption = False,
) -> None:
    """Show when each token was issued, submitted and renewed, its max date, and its end, from log lines.

    Its renewals come at 90 % of the time that is left, until one gives no later end than the one before.
    """
    histories = histories_in(logs, application, zone_of(time_zone))
    if html:
        write_private(html, histories_page(histories, logs.name).encode())
    if as_json:
        print_json([each.to_json() for each in histories])
        return
    for each in histories:
        for line in history_lines(each):
            say(line)
        show(events_table(each))
