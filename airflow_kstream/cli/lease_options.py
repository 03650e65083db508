"""The options of `kstream leases`, and the values that they make together."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.supervise.leases.recover import Backend
from airflow_kstream.supervise.leases.requests import LimitsName

Folder = Annotated[str, typer.Argument(metavar="PATH", help="An absolute HDFS folder or file.")]
Folders = Annotated[list[str], typer.Argument(metavar="PATH", help="Absolute HDFS folders or files.")]
Below = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Only these absolute HDFS folders or files; without one, all."),
]
File = Annotated[str, typer.Argument(metavar="PATH", help="An absolute HDFS path of a file.")]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", help="A shell pattern of the name, or of the whole path if it has a slash. Repeatable."),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PATTERN[=APPLICATION]",
        help="Files here may be recovered although their holder is alive, once their application (an id, or a "
        "stream's name) is finished. Repeatable. In the last part of a path, write [=] for a literal =.",
    ),
]
Approved = Annotated[
    list[str] | None,
    typer.Option(
        "--approve", metavar="PATH", help="Recover exactly this file even if its holder is alive. Repeatable."
    ),
]
ApprovedBy = Annotated[str | None, typer.Option("--approved-by", metavar="NAME", help="Who approved that.")]
Owner = Annotated[str | None, typer.Option(help="Only files of this owner.")]
Holder = Annotated[str | None, typer.Option(help="Only files that this client name holds.")]
Host = Annotated[str | None, typer.Option(help="Only files of clients on this host.")]
LeakAfter = Annotated[
    str, typer.Option("--leak-after", help="A living holder's file counts as leaked once unchanged for this long.")
]
OpenFor = Annotated[
    str,
    typer.Option(
        "--min-age", help="Only files opened at least this long ago, e.g. 10m. `recover` has its own --min-age."
    ),
]
NotYounger = Annotated[
    str,
    typer.Option(
        "--min-age",
        help="Skip files opened more recently than this, even if their holder is dead (0s: skip none).",
    ),
]
Limits = Annotated[
    LimitsName,
    typer.Option(help="unlimited: no concurrency limits. Safe mode, dead DataNodes and failures stop it all the same."),
]
PerDatanode = Annotated[
    int | None,
    typer.Option(
        "--per-datanode",
        min=1,
        max=1_000_000,
        show_default="512, or --in-all if that is less",
        help="The most recoveries at once on one DataNode.",
    ),
]
InAll = Annotated[
    int | None,
    typer.Option(
        "--in-all", min=1, max=1_000_000, show_default="1000", help="The most recoveries at once on all DataNodes."
    ),
]
Deadline = Annotated[
    str, typer.Option("--deadline", help="How long to wait for a file to close before it is given up, e.g. 30m.")
]
WhichBackend = Annotated[
    Backend, typer.Option("--backend", help="native, or hdfs-debug: one JVM per file, running hdfs debug recoverLease.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done; touch no lease.")]
Since = Annotated[str, typer.Option("--since", help="How far back, e.g. 7d or 12h.")]


def duration(option: str, text: str) -> timedelta:
    """Read an option's duration. Raises InvalidInput: when it is not a duration."""
    try:
        return parse_duration(text)
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error.message}") from None
