"""Parsing the declarations of a fleet: the shipped DAG file against one written by hand, in one run.

    python -m benchmarks.declarations --streams 500 --rounds 5

By hand means what authors write: `yaml.safe_load` for each file, which uses PyYAML's own parser, and a DAG with one
operator that does nothing; nothing is checked. Both sides run in a process of their own and take turns; imports are not
counted, and the import of this package beyond Airflow is a row of its own. The result is the median of the rounds, in
seconds of the clock and of CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.report import Figure, save, table

_WIDTH = 150
_STREAM = """
name: {name}
credentials: {{mode: keytab, principal: streamer@EXAMPLE.COM, keytab: /etc/keytabs/streamer.keytab}}
application: /jobs/orders.py
arguments: [--topic, {name}]
checkpoints: [/data/{name}/checkpoint]
conf:
  spark.sql.shuffle.partitions: 8
  spark.hadoop.fs.s3a.secret.key: {{secret: "var:orders_s3_secret"}}
deploy: {{queue: streams, executors: 4, executor_memory: 4g}}
restart: {{max_age: 5d}}
airflow: {{queue: edge, tags: [sales]}}
"""
# The last line of each program prints seconds of the clock and of CPU.
_CLOCK = "began = time.monotonic(), time.process_time()"
_PRINT = "print(json.dumps([time.monotonic() - began[0], time.process_time() - began[1]]))"
_AIRFLOW = """
import json, os, sys, time
from airflow.sdk import DAG, BaseOperator, Param, task
from airflow.sdk.configuration import conf
conf.get("core", "dags_folder")
"""
_IMPORT = f"{_AIRFLOW}\n{_CLOCK}\nimport airflow_kstream.dags.streams\n{_PRINT}"
_OURS = f"""{_AIRFLOW}
from airflow_kstream.dags.streams import declared_dags
{_CLOCK}
made = declared_dags()
{_PRINT}
"""
_BY_HAND = f"""{_AIRFLOW}
import yaml
from datetime import datetime, timedelta, timezone
from pathlib import Path
from airflow.providers.standard.operators.empty import EmptyOperator
{_CLOCK}
for file in sorted(Path(os.environ["AIRFLOW__KSTREAM__STREAMS_FOLDER"]).glob("*/*.yaml")):
    fields = yaml.safe_load(file.read_text())
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    with DAG(f"stream-{{file.stem}}", schedule=timedelta(minutes=5), start_date=start, catchup=False):
        EmptyOperator(task_id="keep", params=dict(application=fields["application"]))
{_PRINT}
"""


def main() -> None:
    """Write the declarations, measure, and print one table."""
    asked = _asked()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="kstream-declarations-") as folder:
        _declare(Path(folder) / "streams" / "prod", asked.streams)
        figures = list(_figures(Path(folder), asked))
    caption = f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {asked.rounds} rounds"
    Console(width=None if Console().is_terminal else _WIDTH).print(table(figures, caption))
    if asked.json:
        save(figures, asked.json)


def _figures(folder: Path, asked: Namespace) -> Iterator[Figure]:
    one = {"_AIRFLOW_PARSING_CONTEXT_DAG_ID": f"stream-prod.s{asked.streams - 1}"}
    parse, start = f"parse {asked.streams} declarations", f"start one task of {asked.streams}"
    rows: list[tuple[str, str, str, dict[str, str]]] = [
        ("import beyond Airflow", "airflow_kstream.dags.streams", _IMPORT, {}),
        (parse, "by hand, unchecked", _BY_HAND, {}),
        (parse, "kstream, each field checked", _OURS, {}),
        (start, "by hand: all are read", _BY_HAND, one),
        (start, "kstream: one is read", _OURS, one),
    ]
    rounds = [[_measured(program, folder, more) for _, _, program, more in rows] for _ in range(asked.rounds)]
    for (task, backend, _, _), seen in zip(rows, zip(*rounds, strict=True), strict=True):
        yield Figure(task, backend, median(clock for clock, _ in seen), cpu=median(cpu for _, cpu in seen))


def _measured(program: str, folder: Path, more: dict[str, str]) -> tuple[float, float]:
    env = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__KSTREAM__STREAMS_FOLDER": str(folder / "streams"),
        **more,
    }
    done = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True)
    clock, cpu = json.loads(done.stdout.splitlines()[-1])
    return clock, cpu


def _declare(folder: Path, streams: int) -> None:
    folder.mkdir(parents=True)
    for number in range(streams):
        (folder / f"s{number}.yaml").write_text(_STREAM.format(name=f"s{number}"))


def _asked() -> Namespace:
    parser = ArgumentParser(prog="benchmarks.declarations", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
