"""Making and pushing fresh delegation tokens for many streams: this package in one process against `hdfs fetchdt`.

    python -m benchmarks.token_pushes --streams 1 100 1000

`hdfs fetchdt` starts a JVM for each token and puts it into a local file; a few are measured, the rest extrapolated.
This package logs in, makes and renews each token over RPC, as a task of its own would; then also uploads and announces
it. At last one running stream gets some, each until its driver has confirmed it, which looks each 5 s; beside them
stands what they replace: a planned restart, until its first commit.
"""

from __future__ import annotations

import os
import resource
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import mint
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.kerberos.credentials_file import FreshToken, credentials_file
from airflow_kstream.model.streams.contract import tokens_file
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.supervise.clusters.connection import cluster_of, connection_fields
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.orders.desired import request_restart
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.restart.token_pushes import record_push
from benchmarks.ground import Environment, ground
from benchmarks.report import Figure, save, table
from tests.live.streams import await_commits, rate_stream
from tests.live.token_pushes import push, refreshed

_WIDTH = 150
_FETCHER = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"
_FETCHED = 3


def main() -> None:
    """Start a minicluster, measure, and print one table."""
    asked = _asked()
    load = os.getloadavg()[0]
    with ground() as under, session_on(under.minicluster) as session:
        figures = [figure for count in asked.streams for figure in _figures(under, session, count)]
        figures += _confirmed(under, asked.confirmed)
    caption = f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
    drawn = table(figures, caption)
    Console(width=None if Console().is_terminal else _WIDTH).print(drawn)
    if asked.json:
        save(figures, asked.json)


@contextmanager
def session_on(minicluster: Minicluster) -> Iterator[ClusterSession]:
    os.environ["KRB5_CONFIG"] = str(minicluster.krb5_conf)
    with ExitStack() as stack:
        fields = connection_fields("minicluster", minicluster.connection())
        cluster = stack.enter_context(cluster_of("minicluster", fields))
        yield stack.enter_context(open_session(cluster, cluster.watcher))


def _figures(under: Environment, session: ClusterSession, count: int) -> Iterator[Figure]:
    task = f"{count} tokens" if count > 1 else "one token"
    fetched = min(count, _FETCHED)
    seconds, _ = under.doing(f"{fetched} by hdfs fetchdt", lambda: _timed(lambda: _fetch(under.minicluster, fetched)))
    extrapolated = fetched if fetched < count else None
    yield Figure(task, "hdfs fetchdt, one after the other", seconds / fetched * count, count, extrapolated=extrapolated)
    seconds, cpu = under.doing(task, lambda: _timed(lambda: [_made(session) for _ in range(count)]))
    yield Figure(task, "made and renewed over RPC", seconds, count, cpu=cpu)
    seconds, cpu = under.doing(f"{task}, pushed", lambda: _timed(lambda: _push(session, count)))
    yield Figure(task, "made, uploaded and announced", seconds, count, cpu=cpu)


def _confirmed(under: Environment, count: int) -> tuple[Figure, Figure]:
    spec = rate_stream("confirming", TicketCredentials(refresh=True))
    with refreshed(under.minicluster, spec, "streamer") as supervisor:
        pushing, cpu = under.doing(
            f"{count} confirmed", lambda: _timed(lambda: [push(supervisor) for _ in range(count)])
        )
        restarting, spent = under.doing("a planned restart", lambda: _timed(lambda: _restart(supervisor)))
    task = f"{count} pushes to a running stream"
    return (
        Figure(task, "a planned restart instead, up to its first commit", restarting, 1, cpu=spent),
        Figure(task, "made, pushed and confirmed by its driver, each", pushing / count, 1, cpu=cpu / count),
    )


def _restart(supervisor: Reconciler) -> None:
    request_restart(supervisor.subject, "a benchmark")
    supervisor.run()
    await_commits(supervisor.session, supervisor.spec, 2)


def _fetch(minicluster: Minicluster, count: int) -> None:
    for number in range(count):
        done = minicluster.hadoop_main(_FETCHER, str(minicluster.root / f"fetched-{number}"), as_="streamer")
        if done.returncode:
            raise SystemExit(f"hdfs fetchdt ended with {done.returncode}: {done.stderr}")


def _made(session: ClusterSession) -> FreshToken:
    conf = HadoopConf(str(session.cluster.hadoop_conf_dir))
    return mint(conf, session.cluster.default_fs, session.identity)


def _push(session: ClusterSession, count: int) -> None:
    for number in range(count):
        folder = StreamFolder(session, StreamId(f"pushed{number}", session.cluster.state_dir), acting=True)
        token = _made(session)
        push = TokenPush(1, time.time_ns() // 1_000_000, token.until)
        folder.put_tokens(tokens_file(push), credentials_file((token,)))
        record_push(folder, push, (token,))


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds on the clock and of this process's CPU."""
    used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    seconds, now = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    return seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def _asked() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.token_pushes", description="Fresh tokens for many streams.")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--confirmed", type=int, default=10, help="pushes to one running stream")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
