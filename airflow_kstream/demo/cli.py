"""`kstream demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.demo.config import DemoConfig
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.environment import end_on_signals
from airflow_kstream.demo.run import Demo


def demo(
    once: Annotated[bool, typer.Option("--once", help="End when the promises are checked.")] = False,
    with_crashes: Annotated[
        bool,
        typer.Option("--with-crashes", help="Kill (SIGKILL) the triggerer and the scheduler at the worst moments."),
    ] = False,
    root: Annotated[Path | None, typer.Option(help="Working folder; a new temporary one by default.")] = None,
) -> None:
    """Run a kerberized cluster, Airflow, and three streams that outlive their delegation tokens: about 12 minutes."""
    end_on_signals()
    folder = root or Path(tempfile.mkdtemp(prefix="kstream-demo-"))
    console = DemoConsole(Console())
    console.say(f"logs and data are in {folder}")
    plan = DemoConfig(root=folder, with_crashes=with_crashes, once=once)
    if not Demo(plan, console).run():
        raise typer.Exit(1)
