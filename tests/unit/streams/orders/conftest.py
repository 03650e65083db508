"""`kstream streams` in this process, on a stream of the fake engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from airflow_kstream.cli import main, stream_options, stream_status
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.supervise.streams.folder.engine import Engine
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER


class CommandLine:
    """`kstream streams` in this process. Only the servers and the engine are not the real ones."""

    def __init__(self, life: Life, cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.life = life
        self.clients: list[str] = []
        self.foretold: dict[str, tuple[str, ...]] = {}
        self._cluster = cluster
        self._capsys = capsys

    def engine_of(self, spec: StreamSpec, spark: Callable[[], SparkDefaults], spark_submit: str) -> Engine:
        self.clients.append(spark_submit)
        return self.life.engine

    def run(self, command: str, *options: str, name: str = SPEC.name) -> tuple[int, list[str]]:
        """Return the exit code and the lines of the output."""
        with pytest.raises(SystemExit) as end:
            main(["streams", command, "--cluster", str(self._cluster), *([name] if name else []), *options])
        printed = self._capsys.readouterr()
        return int(end.value.code or 0), [*printed.out.splitlines(), *printed.err.splitlines()]

    @property
    def generations(self) -> list[bool]:
        """Return, for each application in the order of its start, whether it is alive."""
        return [app.alive for app in self.life.yarn.apps.values()]


def cluster_file(folder: Path) -> Path:
    watcher = CLUSTER.watcher
    fields = {
        "principal": watcher.principal,
        "keytab_path": watcher.keytab,
        "state_dir": CLUSTER.state_dir,
        "default_fs": CLUSTER.default_fs,
        "resourcemanagers": CLUSTER.resourcemanagers[0],
        "namenodes": CLUSTER.namenodes[0],
    }
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(fields))
    return file


@pytest.fixture
def at_first(
    life: Life, served: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """A command line for a stream that was never submitted."""
    line = CommandLine(life, cluster_file(tmp_path), capsys)
    monkeypatch.setenv("COLUMNS", "400")
    # Declarations name no engine, and Spark's is the only one that is shipped.
    monkeypatch.setattr(stream_options, "engine_of", line.engine_of)
    # A doctor asks servers that are not simulated here.
    monkeypatch.setattr(stream_status, "foretell", lambda session, name: line.foretold)
    life.hdfs.write(f"{CLUSTER.state_dir}/other-stream/gen-000001", "")
    return line


@pytest.fixture
def kstream(at_first: CommandLine) -> CommandLine:
    """A command line for a stream that runs."""
    at_first.life.begin()
    return at_first
