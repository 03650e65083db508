"""The options of `kstream leases`, and the values that they make together."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated

import typer

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.forms import help_of
from airflow_kstream.model.leases.requests import Backend, LimitsName, RecoveryRequest

_said = partial(help_of, RecoveryRequest)
_REPEATABLE = " Repeatable."
Folder = Annotated[
    str, typer.Argument(metavar="PATH", help="An absolute HDFS folder or file; of a folder all below it.")
]
Folders = Annotated[list[str], typer.Argument(metavar="PATH", help="Absolute HDFS folders or files.")]
Below = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Only these absolute HDFS folders or files; without one, all."),
]
File = Annotated[str, typer.Argument(metavar="PATH", help="An absolute HDFS path of a file.")]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", help=_said("patterns") + _REPEATABLE),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PATTERN[=APPLICATION]",
        help=_said("allowed") + _REPEATABLE,
    ),
]
Approved = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="PATH", help=_said("approve") + _REPEATABLE),
]
ApprovedBy = Annotated[str | None, typer.Option("--approved-by", metavar="NAME", help="Who approved that.")]
Owner = Annotated[str | None, typer.Option(help="Only files of this owner.")]
Holder = Annotated[str | None, typer.Option(help="Only files that this client name holds.")]
Host = Annotated[str | None, typer.Option(help="Only files of clients on this host.")]
LeakAfter = Annotated[str, typer.Option("--leak-after", help=_said("leak_after"))]
OpenFor = Annotated[
    str,
    typer.Option(
        "--min-age", help="Only files opened at least this long ago, e.g. 10m. `recover` has its own --min-age."
    ),
]
NotYounger = Annotated[str, typer.Option("--min-age", help=_said("min_age"))]
Limits = Annotated[LimitsName, typer.Option(help=_said("limits"))]
PerDatanode = Annotated[
    int | None,
    typer.Option(
        "--per-datanode",
        min=1,
        max=1_000_000,
        show_default="512, or --in-all if that is less",
        help=_said("per_datanode"),
    ),
]
InAll = Annotated[
    int | None,
    typer.Option("--in-all", min=1, max=1_000_000, show_default="1000", help=_said("in_all")),
]
Deadline = Annotated[str, typer.Option("--deadline", help=_said("deadline"))]
WhichBackend = Annotated[Backend, typer.Option("--backend", help=_said("backend"))]
DryRun = Annotated[bool, typer.Option("--dry-run", help=_said("dry_run"))]
Since = Annotated[str, typer.Option("--since", help="How far back, e.g. 7d or 12h.")]


def duration(option: str, text: str) -> timedelta:
    """Read an option's duration. Raises InvalidInput: when it is not a duration."""
    try:
        return parse_duration(text)
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error.message}") from None
