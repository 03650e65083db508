"""The job of Flink's that the playground, the demonstration and the tests run, built from its source."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.jars import flink_connector_jars, flink_jars
from airflow_kstream.minicluster.site import NO_COUNTERS
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.errors import MiniclusterError
from airflow_kstream.model.streams.deploy import FlinkDeploy

MAIN_CLASS = "kstream.demo.Rows"
_SOURCE = Path(__file__).parent / "jobs/flink/Rows.java"
# A jar's own: signatures of what it no longer is, and what each of several jars has.
_LEFT_OUT = ("META-INF/MANIFEST.MF", "META-INF/LICENSE", "META-INF/NOTICE", "module-info.class")


def job_jar(minicluster: Minicluster) -> Path:
    """Return where the jar of a minicluster's own job lies."""
    return minicluster.root / "rows.jar"


def of_flink(minicluster: Minicluster, *files: Path) -> dict[str, Any]:
    """Return the fields of a stream that runs this job on the minicluster's Flink, with files of its own."""
    libraries = (minicluster.flink_lib_dir(Feature.FLINK),)
    shipped = tuple(map(str, files))
    deploy = FlinkDeploy(flink=str(Feature.FLINK), main_class=MAIN_CLASS, lib_dirs=libraries, files=shipped)
    return {"application": str(job_jar(minicluster)), "deploy": deploy}


def build_job(feature: Feature, jar: Path, source: Path = _SOURCE) -> Path:
    """Compile the job, or another one, for this Flink and write its jar, with the Kafka connector in it.

    Raises as `compile_java`.
    """
    connector = flink_connector_jars(feature)
    with tempfile.TemporaryDirectory(dir=jar.parent) as classes:
        compile_java([source], (*sorted(flink_jars(feature).glob("*.jar")), *connector), Path(classes))
        _write(jar, Path(classes), connector)
    return jar


def compile_java(sources: Iterable[Path], classpath: Iterable[Path], classes: Path) -> None:
    """Compile for Java 8 into this folder. Raises as `javac`."""
    words = ("--release", "8", "-proc:none", "-Xlint:-options", "-cp", ":".join(map(str, classpath)), "-d")
    javac(*words, str(classes), *map(str, sources))


def javac(*words: str, java: Path | None = None) -> None:
    """Run Java's compiler: `-version` shows that there is one.

    Raises MiniclusterError: when Java has none (a JRE alone), or it refuses a source.
    """
    home = java or java_home()
    command = [str(home / "bin/java"), NO_COUNTERS, "-m", "jdk.compiler/com.sun.tools.javac.Main", *words]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    said = f"{done.stdout}{done.stderr}".strip()
    if "java.lang.module.FindException" in said:
        raise MiniclusterError(f"{home} has no compiler, which Flink's job needs: install a JDK, or set JAVA_HOME")
    if done.returncode:
        raise MiniclusterError(f"Java was not compiled: {said[:500]}")


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
