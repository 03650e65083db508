"""The environment of a benchmark: a cluster of its own, and a display of progress."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.minicluster.config import Feature
from tests.live.bring_up import bring_up

_PRODUCTION = ("-XX:TieredStopAtLevel=4",)
HOME = f"/user/{getuser()}/benchmark"
Each = TypeVar("Each")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Environment:
    """The minicluster, and the console for progress, which is separate from the figures."""

    minicluster: Minicluster
    console: Console = field(default_factory=lambda: Console(stderr=True))

    def doing(self, what: str, work: Callable[[], Result]) -> Result:
        """Show a status line while the work runs."""
        (result,) = (work() for _ in self.each(what, [None]))
        return result

    def each(self, what: str, things: Iterable[Each]) -> Iterable[Each]:
        """Iterate with a progress bar; without a terminal, print one line first."""
        if self.console.is_terminal:
            return track(list(things), what, console=self.console, transient=True)
        self.tell(f"{what} ...")
        return things

    def tell(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False)


@contextmanager
def ground(heartbeat: timedelta = timedelta(seconds=3)) -> Iterator[Environment]:
    """Start a minicluster without Kafka in a temporary folder.

    It has Hadoop's default heartbeat, with which a recovery begins, and NameNodes that compile hot code as in
    production.
    """
    with tempfile.TemporaryDirectory(prefix="kstream-benchmark-") as root:
        plan = MiniclusterConfig(Path(root), frozenset({Feature.HA}), heartbeat=heartbeat, namenode_java=_PRODUCTION)
        minicluster = bring_up(plan)
        try:
            # libkrb5 in this process knows the realm only from its environment.
            os.environ["KRB5_CONFIG"] = str(minicluster.krb5_conf)
            yield Environment(minicluster)
        finally:
            minicluster.down()
