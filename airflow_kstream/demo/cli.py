"""`kstream demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.demo.config import DemoPlan
from airflow_kstream.demo.console import Narrator
from airflow_kstream.demo.environment import end_on_signals
from airflow_kstream.demo.run import Demo


def demo(
    once: Annotated[bool, typer.Option("--once", help="End when the promises are checked.")] = False,
    with_crashes: Annotated[
        bool, typer.Option("--with-crashes", help="SIGKILL the triggerer and the scheduler at the worst moments.")
    ] = False,
    root: Annotated[Path | None, typer.Option(help="Where it works; a new temporary folder by default.")] = None,
) -> None:
    """A kerberized cluster, Airflow, and two streams that outlive their delegation tokens: about 13 minutes."""
    end_on_signals()
    folder = root or Path(tempfile.mkdtemp(prefix="kstream-demo-"))
    narrator = Narrator(Console())
    narrator.say(f"logs and data are in {folder}")
    plan = DemoPlan(root=folder, with_crashes=with_crashes, once=once)
    if not Demo(plan, narrator).run():
        raise typer.Exit(1)
