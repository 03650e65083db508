"""After all other tests: where the run's programs wrote what nobody asked them to write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.conftest import OWN
from tests.left_in_tmp import what_was_left
from tests.secrets.watch import Sightings


def test_no_program_of_the_run_left_anything_in_the_machines_temporary_folder() -> None:
    """Hadoop has stores whose default is a folder in /tmp, whatever its own temporary folder is."""
    assert what_was_left(OWN.run) == []


def test_no_jvm_of_the_run_left_anything_in_the_machines_temporary_folder() -> None:
    jvms = jvms_of(OWN.run, Sightings.read((OWN.run / "known").glob("*.json")).command_lines)
    assert any("org.apache.spark" in line for line in jvms)
    assert any("NameNode" in line for line in jvms)
    assert not [line for line in jvms if "-XX:-UsePerfData" not in line or not is_below(OWN.run, temporary(line))]


def jvms_of(run: Path, command_lines: Iterable[str]) -> list[str]:
    """Return the command lines of JVMs that name the run's folder: others may run on the machine."""
    lines = [line for line in command_lines if line.partition(" ")[0].endswith("/java")]
    return [line for line in lines if str(run) in line]


def temporary(line: str) -> str:
    """Return the temporary folder of a JVM; of two options with one name Java takes the last one."""
    return next((word for word in reversed(line.split()) if word.startswith("-Djava.io.tmpdir=")), "").partition("=")[2]


def is_below(folder: Path, path: str) -> bool:
    return Path(path).is_relative_to(folder)
