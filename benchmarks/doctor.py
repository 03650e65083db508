"""A doctor's run over a cluster of many streams, against the Hadoop commands that read some of the same, in one run.

    python -m benchmarks.doctor --streams 200 --rounds 3

Each stream has its claim, its folder, an application in YARN that sleeps or waits, a staging folder, and every second
one a checkpoint with batches. The other side is one `hdfs getconf -confKey` for each property that the checks read, and
one `yarn application -status` for each stream, each in a JVM of its own; some of them are measured, and the rest is
extrapolated. They read the client's files, not what the servers run with, and conclude nothing.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from getpass import getuser
from pathlib import Path
from statistics import median

import yaml
from rich.console import Console

from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec, TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim
from airflow_kstream.supervise.streams.folder.state_folder import new_nonce
from benchmarks.ground import Environment, ground
from benchmarks.programs import Program, Ran, hadoop_program
from benchmarks.report import Figure, save, table
from tests.live import sleepers
from tests.live.streams import cluster

_WIDTH, _BATCHES, _SAMPLE = 150, 2, 3
# Of the only node: one application runs, and all others wait, for as long as the benchmark takes.
_ALL_MEMORY = 14_336
_GETCONF, _STATUS = "org.apache.hadoop.hdfs.tools.GetConf", "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_KEY = "dfs.namenode.lease-hard-limit-sec"
# As many as the checks read.
_PROPERTIES = 20


def main() -> None:
    """Start a minicluster, fill it, measure, and print one table."""
    asked = _asked()
    load = os.getloadavg()[0]
    with ground() as under:
        under.minicluster.hdfs("dfs", "-mkdir", "-p", "-m", "777", "/kstream")
        under.minicluster.hdfs("dfs", "-mkdir", "-p", "-m", "777", f"/user/{getuser()}")
        with cluster(under.minicluster) as opened, open_session(opened, opened.watcher) as session:
            applications = list(_fill(under, session, asked.streams))
        figures = list(_figures(under, asked, applications[0]))
    caption = f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {asked.rounds} rounds"
    Console(width=None if Console().is_terminal else _WIDTH).print(table(figures, caption))
    if asked.json:
        save(figures, asked.json)


def _fill(under: Environment, session: ClusterSession, count: int) -> Iterator[str]:
    """Make the streams, and yield the id of each one's application."""
    lifetimes = learn_lifetimes(session.hdfs, session.identity)
    server = session.yarn.active()
    with closing(kerberos_session(session.identity, session.cluster.tls)) as http:
        for number in under.each(f"{count} streams", range(count)):
            spec = _spec(session, number)
            # As a claim is written, without the proofs that nobody else made it: those take a second each.
            stream = StreamId(spec.name, session.cluster.state_dir)
            draft = ClaimDraft(1, new_nonce(), spec, lifetimes, {}, "")
            session.hdfs.write(f"{stream.folder}/{claim_file(1)}", written_claim(draft, "benchmark"))
            name = sleepers.submit(server, http, stream, _ALL_MEMORY)
            session.hdfs.make_folder(f"/user/{getuser()}/.sparkStaging/{name}")
            for batch in range(_BATCHES if spec.checkpoints else 0):
                session.hdfs.write(f"{spec.checkpoints[0]}/offsets/{batch}", "v1")
                session.hdfs.write(f"{spec.checkpoints[0]}/commits/{batch}", "v1")
            yield name


def _spec(session: ClusterSession, number: int) -> StreamSpec:
    name = f"stream-{number:04d}"
    base = StreamSpec(name, TicketCredentials(), "/jobs/orders.py", (f"/user/{getuser()}/{name}/checkpoint",))
    if number % 2:
        return replace(base, credentials=KeytabCredentials(session.identity.principal), checkpoints=())
    return base


def _figures(under: Environment, asked: Namespace, application: str) -> Iterator[Figure]:
    task = f"a look at {asked.streams} streams and their cluster"
    jvms = [
        hadoop_program(under.minicluster, _GETCONF, "-confKey", _KEY),
        hadoop_program(under.minicluster, _STATUS, "application", "-status", application),
    ]
    doctor = _doctor(under)
    runs = [_seen(doctor.run(), asked.streams).cost for _ in under.each("the doctor", range(asked.rounds))]
    one, other = (_seconds(under, program, _SAMPLE) for program in jvms)
    by_hand = one * _PROPERTIES + other * asked.streams
    note = f"{one:.1f} s a property, {other:.1f} s an application"
    yield Figure(task, "hdfs getconf and yarn application -status", by_hand, extrapolated=2 * _SAMPLE, note=note)
    seconds, cpu = median(run.wall for run in runs), median(run.cpu for run in runs)
    yield Figure(task, "kstream doctor", seconds, cpu=cpu, note="no JVM")


def _seen(ran: Ran, streams: int) -> Ran:
    """Return the run. Raises RuntimeError: when it did not see all streams, which would be quick."""
    found = json.loads(ran.said)["findings"]
    seen = {concern["stream"] for finding in found for concern in finding["concerns"]}
    if len(seen) != streams:
        raise RuntimeError(f"it saw {len(seen)} of {streams} streams: {ran.said[-2000:]}")
    return ran


def _seconds(under: Environment, program: Program, rounds: int) -> float:
    return median(program.run().cost.wall for _ in under.each(program.command[-1], range(rounds)))


def _doctor(under: Environment) -> Program:
    """Return the command in a process of its own, whose exit code is 0 whatever it finds."""
    folder = under.minicluster.root
    (folder / "doctor.yaml").write_text(yaml.safe_dump(under.minicluster.connection()))
    code = "import sys; from airflow_kstream.cli import main\ntry:\n main(sys.argv[1:])\nexcept SystemExit: pass"
    words = ["doctor", "--cluster", str(folder / "doctor.yaml"), "--json"]
    environment = {**under.minicluster.client_env("streamer"), "SPARK_HOME": ""}
    return Program([sys.executable, "-c", code, *words], environment)


def _asked(argv: Sequence[str] | None = None) -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
