"""The jar that a Flink job is given: `python -m tests.flink_jar` builds it anew from its sources, which lie beside it.

Built twice by one JDK it has the same bytes: nothing in it has a time, and nothing is compressed.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from airflow_kstream.demo.flink_job import compile_java
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.jars import flink_jars, hadoop_jars

FOLDER = Path(__file__).parents[1] / "airflow_kstream/jobs/flink"
JAR = FOLDER / "kstream-flink.jar"
# Of the jar and of what it was built from, in the form of sha256sum.
SUMS = FOLDER / "kstream-flink.sha256"
SERVICES = "META-INF/services"


def sources() -> list[Path]:
    return sorted(FOLDER.rglob("*.java"))


def services() -> list[Path]:
    return sorted((FOLDER / SERVICES).iterdir())


def build(jar: Path) -> Path:
    """Compile the sources against the oldest Flink that there is, and write the jar."""
    classpath = (*sorted(flink_jars(Feature.FLINK).glob("*.jar")), *sorted(hadoop_jars().glob("*.jar")))
    with tempfile.TemporaryDirectory(dir=jar.parent) as classes, ZipFile(jar, "w") as target:
        compile_java(sources(), classpath, Path(classes))
        compiled = {str(file.relative_to(classes)): file for file in Path(classes).rglob("*.class")}
        named = {str(file.relative_to(FOLDER)): file for file in services()}
        for name, file in sorted((compiled | named).items()):
            entry = ZipInfo(name)
            entry.external_attr = 0o644 << 16
            target.writestr(entry, file.read_bytes())
    return jar


def sums() -> str:
    files = sorted([JAR, *sources(), *services()])
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(FOLDER)}\n" for file in files)


if __name__ == "__main__":
    build(JAR)
    SUMS.write_text(sums())
