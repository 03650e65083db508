"""`kstream monitoring`: writes what Prometheus and Grafana need to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.output import say
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.monitoring import NAMES, text_of

Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", file_okay=False, help="Where to write the files; it is made if it is missing."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there and differ.")]

DocsUrl = Annotated[
    str,
    typer.Option(
        "--docs-url",
        metavar="URL",
        envvar="AIRFLOW__KSTREAM__DOCS_URL",
        help="Where this package's site is served: each alert then has a runbook_url that leads to its entry.",
    ),
]


def monitoring(folder: Folder, force: Force = False, docs_url: DocsUrl = "") -> None:
    """Write the rules, their tests, the StatsD exporter's mapping and the dashboard to a folder.

    A file that is there and differs is somebody's work: without --force nothing is written at all.
    """
    texts = {folder / name: text_of(name, docs_url) for name in NAMES}
    differing = [path for path, text in texts.items() if path.exists() and not _holds(path, text)]
    if differing and not force:
        names = ", ".join(path.name for path in differing)
        remedy = "compare them, then give --force to replace them"
        raise InvalidInput(f"these exist and differ: {names}; {remedy}", tried=f"write to {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        say(str(path))


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()
