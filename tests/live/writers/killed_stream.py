"""A Spark stream that was killed while it wrote its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.minicluster import Minicluster, record
from tests.live.writers.hadoop_says import open_files
from tests.live.writers.held_call import held_call

_PATIENCE_SECONDS = 400


@dataclass(frozen=True)
class KilledStream:
    """`offsets` is the open temporary file of the batch that was to come; every byte of it is on the DataNode."""

    checkpoint: str
    batch: int
    offsets: str


def spark_stream_killed_in_the_middle(minicluster: Minicluster, checkpoint: str, batch: int = 3) -> KilledStream:
    """Run a real structured stream until it has written `offsets/.<batch>.<uuid>.tmp`, and kill its driver there.

    The driver speaks to the active NameNode through a proxy that withholds one call: `complete` of that file. By then
    the DataNode has acknowledged its last byte, and the driver can't go on: no luck decides where the SIGKILL finds it.
    """
    name = minicluster.active_namenode()
    host, port = _rpc_address(minicluster, name)
    with held_call((host, port), b"complete", f"{checkpoint}/offsets/.{batch}.".encode()) as held:
        conf = {f"spark.hadoop.dfs.namenode.rpc-address.{minicluster.nameservice}.{name}": held.address}
        with _driver(minicluster, conf, checkpoint) as output:
            assert held.wait(_PATIENCE_SECONDS), f"It wrote no offsets of batch {batch}: {_end_of(output)}"
    (offsets,) = open_files(minicluster, checkpoint)
    return KilledStream(checkpoint, batch, offsets)


@contextmanager
def _driver(minicluster: Minicluster, conf: dict[str, str], checkpoint: str) -> Iterator[IO[bytes]]:
    """The stream in client mode on one core; it dies by SIGKILL, JVM and Python together, and closes nothing."""
    options = [
        word for key, value in (minicluster.spark_conf() | conf).items() for word in ("--conf", f"{key}={value}")
    ]
    command = [find_spark_submit(), "--master", "local[1]", *options, str(Path(__file__).with_name("stream.py"))]
    with (
        TemporaryFile() as output,
        subprocess.Popen(
            [*command, checkpoint],
            env=minicluster.client_env("streamer"),
            cwd=record.read_site(minicluster.root).folders.run,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield output
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _rpc_address(minicluster: Minicluster, name: str) -> tuple[str, int]:
    site = record.read_site(minicluster.root)
    return "127.0.0.1", site.ports[f"{name}-rpc"]


def _end_of(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")[-2000:]
