"""The job of Flink's that the demonstration and the tests run, built from its source."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.jars import flink_connector_jars, flink_jars
from airflow_kstream.minicluster.site import NO_COUNTERS
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.errors import MiniclusterError

MAIN_CLASS = "kstream.demo.Rows"
_SOURCE = Path(__file__).parent / "jobs/flink/Rows.java"
# A jar's own: signatures of what it no longer is, and what each of several jars has.
_LEFT_OUT = ("META-INF/MANIFEST.MF", "META-INF/LICENSE", "META-INF/NOTICE", "module-info.class")


def build_job(feature: Feature, jar: Path, source: Path = _SOURCE) -> Path:
    """Compile the job, or another one, for this Flink and write its jar, with the Kafka connector in it.

    Raises MiniclusterError: when Java has no compiler (a JRE alone), or the source doesn't fit this Flink.
    """
    connector = flink_connector_jars(feature)
    with tempfile.TemporaryDirectory(dir=jar.parent) as classes:
        compile_java([source], (*sorted(flink_jars(feature).glob("*.jar")), *connector), Path(classes))
        _write(jar, Path(classes), connector)
    return jar


def compile_java(sources: Iterable[Path], classpath: Iterable[Path], classes: Path) -> None:
    """Compile for Java 8 into this folder.

    Raises MiniclusterError: when Java has no compiler (a JRE alone), or a source doesn't fit the jars.
    """
    compiler = [str(java_home() / "bin/java"), NO_COUNTERS, "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    words = ["--release", "8", "-proc:none", "-Xlint:-options", "-cp", ":".join(map(str, classpath)), "-d"]
    done = subprocess.run(
        [*compiler, *words, str(classes), *map(str, sources)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise MiniclusterError(f"Java was not compiled: {done.stderr.strip()[:500]}")


def _write(jar: Path, classes: Path, connector: tuple[Path, ...]) -> None:
    with ZipFile(jar, "w", ZIP_DEFLATED) as target:
        for file in sorted(classes.rglob("*.class")):
            target.write(file, file.relative_to(classes))
        for source in map(ZipFile, connector):
            with source:
                there = set(target.namelist())
                for name in source.namelist():
                    if name not in there and not name.startswith(_LEFT_OUT):
                        target.writestr(name, source.read(name))
