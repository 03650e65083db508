"""`kstream demo` and `kstream up`."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.demo.config import DemoConfig
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.environment import end_on_signals
from airflow_kstream.demo.playground import Playground, start_cluster, start_playground
from airflow_kstream.demo.run import Demo
from airflow_kstream.minicluster.folders import made_private


def demo(
    once: Annotated[bool, typer.Option("--once", help="End when the promises are checked.")] = False,
    with_crashes: Annotated[
        bool,
        typer.Option("--with-crashes", help="Kill (SIGKILL) the triggerer and the scheduler at the worst moments."),
    ] = False,
    flink: Annotated[
        bool, typer.Option("--flink", help="Two streams of Flink's, which lose a TaskManager: about 16 minutes.")
    ] = False,
    root: Annotated[Path | None, typer.Option(help="Working folder; a new temporary one by default.")] = None,
) -> None:
    """Run a kerberized cluster, Airflow, and three streams that outlive their delegation tokens: about 12 minutes.

    A temporary folder is removed at the end, unless a promise was broken or something failed: then its logs tell why.
    """
    if flink and with_crashes:
        raise typer.BadParameter("remove it: no Flink stream is restarted here", param_hint="--with-crashes")
    end_on_signals()
    console = DemoConsole(Console())
    with working_folder(root, "kstream-demo-", console) as folder:
        spark = DemoConfig(root=folder, with_crashes=with_crashes, once=once)
        plan = DemoConfig.of_flink(folder, once=once) if flink else spark
        if not Demo(plan, console).run():
            raise typer.Exit(1)


def up(
    flink: Annotated[bool, typer.Option("--flink/--no-flink", help="With a stream that Flink runs.")] = True,
    root: Annotated[Path | None, typer.Option(help="Working folder; a new temporary one by default.")] = None,
) -> None:
    """Run a kerberized cluster and Airflow with five streams and a stuck file, to play with until Ctrl-C.

    A temporary folder is removed at the end, unless something did not start: then its logs tell why.
    """
    end_on_signals()
    console = DemoConsole(Console())
    with working_folder(root, "kstream-up-", console) as folder, ExitStack() as stack:
        cluster = start_cluster(folder, console, stack, flink=flink)
        _welcome(start_playground(cluster, folder, console, stack), console)
        stack.callback(console.say, "ending Airflow, the streams and the cluster: some seconds")
        signal.pause()


@contextmanager
def working_folder(root: Path | None, prefix: str, console: DemoConsole) -> Iterator[Path]:
    """Yield `root`, which stays, or a new temporary folder, which is removed at the end and by a signal.

    An error keeps the temporary one: its logs tell why. Keytabs and Airflow's keys get there: it is closed to others.
    Raises MiniclusterError: when it is another user's, or is open and holds other things.
    """
    folder = root or Path(tempfile.mkdtemp(prefix=prefix))
    made_private(folder, ours=(folder / "minicluster").is_dir())
    console.say(f"logs and data are in {folder}")
    with ExitStack() as afterwards:
        if root is None:
            afterwards.push(partial(_remove_unless_it_failed, folder, console))
        yield folder


def _remove_unless_it_failed(folder: Path, console: DemoConsole, kind: type[BaseException] | None, *_: object) -> None:
    # A signal ends it by SystemExit.
    if kind is not None and not issubclass(kind, SystemExit):
        console.say(f"logs and data stay in {folder}")
        return
    shutil.rmtree(folder, ignore_errors=True)
    console.say(f"all of it has ended, and {folder} is removed")


def _welcome(playground: Playground, console: DemoConsole) -> None:
    home = playground.home
    console.say(f"Airflow serves at {home.url}/plugin/kstream")
    console.say(f"log in as {home.login.username}, password {home.login.password}")
    console.say("the streams start one after the other; in another terminal try:")
    console.show(f"export KSTREAM_CLUSTER={playground.cluster_file}", *playground.commands)
    console.say("Ctrl-C ends all of it")
