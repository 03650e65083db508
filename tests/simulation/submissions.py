"""spark-submit as a child process: it outlives its parent, may be lost, and brings its application late."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_kstream.clients import client_process
from tests.simulation.jobs import BROKEN, Order
from tests.simulation.virtual import Killed, Program, SimulationError, current

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(frozen=True)
class Fate:
    """What becomes of a submission other than success: `kind` is one of FATES, `seconds` says how late."""

    kind: str
    seconds: float = 0.0


FATES = ("is lost", "arrives after its client died", "is listed late", "hangs first")


class SparkSubmit:
    """Child processes, of which the supervisor has only this client. They go on when their parent dies."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._children: list[_Client] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        module = SimpleNamespace(
            Popen=self._start,
            DEVNULL=subprocess.DEVNULL,
            STDOUT=subprocess.STDOUT,
            TimeoutExpired=subprocess.TimeoutExpired,
        )
        with ExitStack() as stack:
            for owner, name, value in ((client_process, "subprocess", module), (os, "killpg", self._killed)):
                # A real child would live by the machine's clock.
                stack.enter_context(patch.object(owner, name, value))
            try:
                yield
            finally:
                for child in self._children:
                    child.release()

    def _start(self, argv: Sequence[str], stdout: Any = None, **_: Any) -> _Client:
        """Act as subprocess.Popen."""
        program = current()
        if program is None or not argv[0].endswith("spark-submit"):
            raise SimulationError(f"no simulated program is called {argv[0]}")
        if argv[-1] == "--version":
            raise FileNotFoundError("a simulated client tells nothing of itself")
        if program.over:
            raise Killed
        # It writes to a descriptor of its own.
        log = os.fdopen(os.dup(stdout.fileno()), "wb")
        client = _Client(self._world, _read(argv), self._world.next_fate(), program, log, len(self._children))
        self._children.append(client)
        return client

    def _killed(self, session: int, _: int) -> None:
        """Act as os.killpg. A program that was killed itself sends no signal any more."""
        program = current()
        if program is not None and not program.over:
            self._children[session].end()


class _Client:
    """One run of the client: log in and check the files, submit, end."""

    def __init__(
        self, world: World, order: Order, fate: Fate | None, parent: Program, log: IO[bytes], number: int
    ) -> None:
        self._world, self._order, self._fate, self._by = world, order, fate, parent.name
        self._parent, self._log, self.pid = parent, log, number
        self._rng = random.Random(f"{world.plan.seed}/spark-submit {order.generation} {order.fence}")
        self.exit_code: int | None = None
        self.killed = False
        self._issued = 0.0
        hangs = fate.seconds if fate and fate.kind == "hangs first" else 0.0
        world.scheduler.after(hangs + self._rng.uniform(3, 8), lambda: self._prepare(6))

    def poll(self) -> int | None:
        return self.exit_code

    def wait(self, timeout: float | None = None) -> int:
        """Act as Popen.wait."""
        waited = 0.0
        while self.exit_code is None:
            if timeout is not None and waited >= timeout:
                raise subprocess.TimeoutExpired("spark-submit", timeout)
            if self._parent.over:
                raise Killed
            self._parent.pause(1.0)
            waited += 1.0
        return self.exit_code

    def release(self) -> None:
        """Close its log: some still run when the history ends."""
        self._log.close()

    def end(self) -> None:
        """End it by SIGKILL."""
        self.killed = True
        self._exit(-9, "")

    def _prepare(self, attempts: int) -> None:
        if self.killed:
            return
        if not self._world.namespace.served:
            self._again(attempts, self._prepare)
            return
        if not self._world.files.exists(self._order.fence):
            self._exit(1, f"java.io.FileNotFoundException: File does not exist: {self._order.fence}")
            return
        self._issued = self._world.now
        self._world.scheduler.after(self._rng.uniform(2, 6), lambda: self._submit(10))

    def _submit(self, attempts: int) -> None:
        kind = self._fate.kind if self._fate else ""
        if self.killed:
            return
        if kind == "is lost":
            self._world.checks.tell(self._by, f"its submission of generation {self._order.generation} is lost")
            self._exit(1, "killed")
        elif kind == "arrives after its client died" and self._fate:
            self._exit(137, "killed")
            self._world.scheduler.after(self._fate.seconds, self._arrive)
        elif not self._world.yarn.served:
            self._again(attempts, self._submit)
        else:
            self._arrive()
            self._world.scheduler.after(self._rng.uniform(1, 3), lambda: self._exit(0, "submitted"))

    def _arrive(self) -> None:
        hidden = self._fate.seconds if self._fate and self._fate.kind == "is listed late" else 0.0
        self._world.arrive(self._order, self._issued, hidden)

    def _again(self, attempts: int, step: Callable[[int], None]) -> None:
        if attempts:
            self._world.scheduler.after(10, lambda: step(attempts - 1))
        else:
            self._exit(1, "java.net.ConnectException: Connection refused")

    def _exit(self, code: int, output: str) -> None:
        if self.exit_code is None:
            self.exit_code = code
            self._log.write(output.encode())
            self._log.close()


def _read(argv: Sequence[str]) -> Order:
    options = _options(argv)
    conf = dict(setting.split("=", 1) for setting in options["--conf"])
    state = conf["spark.kstream.state"]
    folder = "/" + state.split("://", 1)[1].split("/", 1)[1]
    fences = [file for files in options["--files"] for file in files.split(",") if "/fence-" in file]
    fence = f"{folder}/{fences[0].rpartition('/')[2]}"
    generation = int(conf["spark.kstream.generation"])
    tags = tuple(conf["spark.yarn.tags"].split(","))
    return Order(options["--name"][0], tags, folder, generation, fence, BROKEN in argv)


def _options(argv: Sequence[str]) -> Mapping[str, list[str]]:
    options: dict[str, list[str]] = {}
    for word, value in pairwise(argv):
        if word.startswith("--"):
            options.setdefault(word, []).append(value)
    return options
