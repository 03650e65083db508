"""A whole world: servers, nodes, drivers, programs, persons, and what happens to them. It is made from a Plan alone."""

from __future__ import annotations

import atexit
import random
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import requests

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from tests.simulation.aims import Aims
from tests.simulation.checks import OUR_USER, Checks
from tests.simulation.connections import Connections
from tests.simulation.files import Files
from tests.simulation.jobs import Driver, Order
from tests.simulation.lost_drivers import freeze_driver
from tests.simulation.plans import Plan
from tests.simulation.submissions import Fate, SparkSubmit
from tests.simulation.virtual import Program, Scheduler, current, virtual
from tests.simulation.wakings import Wakings
from tests.simulation.webhdfs import DATANODE, DataNode, HttpFs, NameNode, Namespace
from tests.simulation.wire import Fault, Request, Wire
from tests.simulation.yarn import App, Node, NodeManager, ResourceManager, Yarn

if TYPE_CHECKING:
    from tests.simulation.polled import PolledKeeper

STREAM = "orders"
CHECKPOINT = "/data/orders/checkpoint"
_PACE_OF_LOOKS = WatchPolicy(every=timedelta(seconds=75), look_every=timedelta(seconds=10))


class World:
    """Servers and hosts. Nothing in it knows the supervisor's internals: it sees requests, files and applications."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = random.Random(f"{plan.seed}/world")
        self.scheduler = Scheduler()
        self.checks = Checks(self)
        self.namespace = Namespace(lambda: self.now, max_lifetime=timedelta(seconds=plan.max_lifetime))
        self.yarn = Yarn(lambda: self.now)
        self.yarn.on_kill, self.yarn.on_signal = self._kill, self._signal
        self.nodes = [Node(f"node{number}") for number in (1, 2, 3)]
        self.drivers: list[Driver] = []
        self.programs: dict[str, Program] = {}
        self.kdc_down_until = 0.0
        # By keeper: until when none of its triggerer's requests reaches a server.
        self.cut_off_until: dict[str, float] = {}
        # The same for the conf folder of its triggerer's host, without which no session can be opened.
        self.without_conf_until: dict[str, float] = {}
        self.client_folder = str(_client_folder())
        self.keepers: Sequence[PolledKeeper] = ()
        self.wakings = Wakings(self)
        self.calm = False
        self.arguments: tuple[str, ...] = ()
        self._fates = {
            happening.number: Fate(happening.kind.removeprefix("a submission "), happening.seconds)
            for happening in plan.happenings
            if happening.kind.startswith("a submission ")
        }
        self._submissions = 0
        self._aims = Aims(plan.happenings)
        self.wire = Wire(lambda: self.now, self.scheduler.after, self._fault, self.fail_over_at_once, self._disturbed)
        self.wire.seen = self._seen
        self._build()
        self.connections = Connections(self)

    @property
    def now(self) -> float:
        return self.scheduler.now

    @property
    def files(self) -> Files:
        return self.namespace.files

    @property
    def life(self) -> float:
        return self.plan.max_lifetime

    def cluster(self, state_dir: str) -> Cluster:
        return Cluster(
            name=self.connection(state_dir),
            resourcemanagers=tuple(rm.address for rm in self.resourcemanagers),
            namenodes=(self.httpfs.address,) if self.plan.httpfs else tuple(nn.address for nn in self.namenodes),
            default_fs="hdfs://simulated",
            watcher=Identity("streamer@EXAMPLE.COM", keytab="/streamer.keytab"),
            state_dir=state_dir,
            hadoop_conf_dir=self.client_folder,
        )

    def connection(self, state_dir: str) -> str:
        """Return the id of the installation's connection."""
        return f"of_{state_dir.strip('/')}"

    def spec(self) -> StreamSpec:
        return StreamSpec(
            name=STREAM,
            credentials=TicketCredentials(),
            application="hdfs:///apps/orders.py",
            checkpoints=(CHECKPOINT,),
            arguments=self.arguments,
            watch=_PACE_OF_LOOKS,
        )

    def arrive(self, order: Order, issued: float, hidden: float) -> None:
        """Let a submission reach the ResourceManager."""
        app = self.yarn.submit(OUR_USER, order.name, order.tags, self._free_node(), hidden)
        self.checks.tell("YARN", f"accepts {app.id} of generation {order.generation}")
        driver = Driver(self, app, order, CHECKPOINT, issued)
        self.drivers.append(driver)
        self.checks.submitted(driver)

    def start_foreign_job(self) -> None:
        """Start a job that somebody submitted by hand, on the stream's checkpoint."""
        app = self.yarn.submit(OUR_USER, "by hand", (), self._free_node())
        self.checks.tell("a person", f"submits {app.id} by hand on {CHECKPOINT}")
        self.drivers.append(Driver(self, app, Order("by hand", (), "", 0, ""), CHECKPOINT, self.now))

    def driver_of(self, app: App) -> Driver | None:
        return next((driver for driver in self.drivers if driver.app.id == app.id), None)

    def asks(self, driver: Driver) -> None:
        """Freeze a driver, or its host, if this request of it is the one."""
        aimed = None if self.calm else self._aims.at(driver, "", self.now)
        if aimed:
            freeze_driver(self, driver, aimed)

    def next_fate(self) -> Fate | None:
        self._submissions += 1
        return self._fates.get(self._submissions)

    def fail_over_at_once(self) -> None:
        one, other = self.namenodes
        self.namespace.active = other if self.namespace.active is one else one
        self.checks.tell("HDFS", f"{self.namespace.active.address} is active")

    def standing(self) -> list[Driver]:
        """Return the drivers that run for our stream."""
        return [driver for driver in self.drivers if driver.alive and driver.begun and driver.folder]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the product into this world: clocks, network, KDC and child processes."""
        with ExitStack() as stack:
            stack.enter_context(virtual())
            stack.enter_context(SparkSubmit(self).installed())
            stack.enter_context(self.wire.connected())
            for name in ("acquire", "log_in"):
                # libkrb5 asks a KDC of its own accord: nothing can be handed to it in place of one.
                stack.enter_context(patch.object(tickets, name, self._ticket))
            yield

    def _build(self) -> None:
        rm1, rm2, nn1, nn2 = self.plan.skews
        self.resourcemanagers = [
            ResourceManager("http://rm1:8088", self.yarn, rm1),
            ResourceManager("http://rm2:8088", self.yarn, rm2),
        ]
        self.namenodes = [
            NameNode("http://nn1:9870", self.namespace, nn1),
            NameNode("http://nn2:9870", self.namespace, nn2),
        ]
        self.httpfs = HttpFs("http://httpfs:14000", self.namespace, nn1)
        self.yarn.active, self.namespace.active = self.resourcemanagers[0], self.namenodes[0]
        self.wire.servers |= {manager.address: manager for manager in self.resourcemanagers}
        self.wire.servers |= {namenode.address: namenode for namenode in self.namenodes}
        self.wire.servers[self.httpfs.address] = self.httpfs
        self.wire.servers[DATANODE] = DataNode(self.namespace)
        for node in self.nodes:
            manager = NodeManager(node, self.yarn, self._runs, self.plan.firewall)
            self.wire.servers[manager.address] = manager
        self.files.listeners.append(self._on_file)
        state_dirs = {state_dir for _, state_dir in self.plan.keepers}
        for folder in ("/tmp", "/user/streamer", "/data", *sorted(state_dirs)):
            self.files.make_folder(folder, 0)
        self.files.write("/apps/orders.py", b"", 0, overwrite=False)

    def _runs(self, number: str) -> bool:
        return any(driver.app.id == number and driver.alive for driver in self.drivers)

    def _on_file(self, path: str, appeared: bool) -> None:
        program = current()
        self.checks.on_file(path, appeared, program.name if program else "a driver")
        if appeared:
            folder, _, name = path.rpartition("/")
            for driver in self.drivers:
                if driver.folder == folder:
                    driver.noticed(name)

    def _free_node(self) -> Node:
        """Return a node for an ApplicationMaster: YARN places one at a node's heartbeat, so none that is cut off."""
        return self.rng.choice([node for node in self.nodes if not node.cut_off] or self.nodes)

    def _kill(self, app: App, diagnostics: str, by: str) -> None:
        self.checks.on_kill(app, by, f"kills ({diagnostics})")
        self.scheduler.after(self.rng.uniform(0.2, 1.5), lambda: self._killed(app, diagnostics))

    def _killed(self, app: App, diagnostics: str) -> None:
        self.yarn.end(app, "KILLED", "KILLED", diagnostics)
        driver = self.driver_of(app)
        if driver and not app.node.cut_off:
            self.scheduler.after(self.rng.uniform(0.3, 1.0) * self.plan.lingers, driver.killed)

    def _signal(self, app: App, command: str, by: str) -> None:
        driver = self.driver_of(app)
        if command == "GRACEFUL_SHUTDOWN":
            self.checks.on_kill(app, by, "sends SIGTERM to")
            if driver:
                self.scheduler.after(self.rng.uniform(0.2, 3.0), driver.signalled)

    def is_cut_off(self, keeper: str) -> bool:
        return self.now < self.cut_off_until.get(keeper, 0.0)

    def _fault(self, program: Program, request: Request) -> Fault | None:
        if current() is not program and self.is_cut_off(program.keeper):
            raise requests.ConnectionError("No route to host")
        aimed = None if self.calm else self._aims.at(program, request.words, self.now)
        return Fault(aimed.kind, aimed.seconds) if aimed else None

    def _seen(self, request: Request) -> None:
        if request.params.get("op") == "LISTSTATUS_BATCH":
            folder = request.path.removeprefix("/webhdfs/v1")
            self.checks.looked[request.program, folder] = self.now
            if (program := current()) and program is not program.process:
                self.checks.watched[request.program, folder] = self.now
            if request.path.endswith("/commits"):
                self.checks.saw_commits(request.program)

    def _disturbed(self, request: Request, kind: str) -> None:
        self.checks.tell(request.program, f"{kind}: {request.words}")
        if kind == "freeze before" and "/fence-" in request.path:
            self.checks.slept[request.program] = self.now

    def _ticket(self, identity: Identity, cache: Path) -> Any:
        program = current()
        assert program is not None
        program.pause(0.05)
        if self.now < self.kdc_down_until:
            program.pause(6.0)
            raise Unavailable("no KDC answers", tried="log in", principal=identity.principal)
        return SimpleNamespace(remaining=lambda now: timedelta(hours=10))


@cache
def _client_folder() -> Path:
    """Make the only files that a supervisor reads from its host: a conf folder and a client, which never runs."""
    folder = Path(tempfile.mkdtemp(prefix="kstream-simulation-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("core-site.xml", "yarn-site.xml"):
        (folder / name).write_text("<configuration/>")
    client_of(folder).write_text("")
    client_of(folder).chmod(stat.S_IRWXU)
    return folder


def client_of(folder: Path) -> Path:
    return folder / "spark-submit"
