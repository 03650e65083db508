"""The figures of a run as one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One way to do a task. `seconds` is for the whole task; `files` is the number of files to divide it by.

    `cpu` is the CPU seconds of the client, not of the cluster, and `peak` its peak memory in MB. `extrapolated` is the
    number that was measured, if not all were.
    """

    task: str
    backend: str
    seconds: float
    files: int = 1
    cpu: float | None = None
    peak: float | None = None
    extrapolated: int | None = None
    note: str = ""


def table(figures: Sequence[Figure], caption: str) -> Table:
    """Build the table. The first figure of each task is the existing tool, and the ratios are to that."""
    drawn = Table("task", "means", caption=caption, show_lines=False)
    for name in ("seconds", "a file", "times faster", "CPU s", "peak MB"):
        drawn.add_column(name, justify="right")
    drawn.add_column("note")
    for task, group in groupby(figures, key=lambda figure: figure.task):
        first, *others = group
        drawn.add_row(task, *_cells(first, ""))
        for figure in others:
            drawn.add_row("", *_cells(figure, _ratio(first.seconds / figure.seconds)))
        drawn.add_section()
    return drawn


def save(figures: Sequence[Figure], path: Path) -> None:
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=1))


def _cells(figure: Figure, ratio: str) -> list[str]:
    extrapolated = f"{figure.extrapolated} measured, the rest extrapolated" if figure.extrapolated else ""
    note = "; ".join(filter(None, (extrapolated, figure.note)))
    each = _duration(figure.seconds / figure.files) if figure.files > 1 else ""
    cpu, peak = (_or_nothing(figure.cpu, ".2f"), _or_nothing(figure.peak, ".0f"))
    return [figure.backend, _number(figure.seconds), each, ratio, cpu, peak, note]


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _number(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}"


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _or_nothing(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
