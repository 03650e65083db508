"""Java's class data sharing for the minicluster's JVMs: a third less work at each start.

The first minicluster on a machine records which classes its JVMs load and archives them beside the jars; a JVM
that finds an archive of another Java or of other jars goes on without it.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from airflow_kstream.minicluster.jars import folder_of
from airflow_kstream.minicluster.site import NO_COUNTERS
from airflow_kstream.minicluster.tools import java_home


def archive_of(jars: Path, classpath: str = "") -> Path:
    """Return the file of the archive for this folder of jars and this Java, whether or not it exists.

    `classpath` is what that of its JVMs begins with; by default it is all the jars.
    """
    release = java_home() / "release"
    java = release.read_bytes() if release.exists() else str(java_home()).encode()
    return jars.with_name(f"{jars.name}-java-{hashlib.sha256(java + classpath.encode()).hexdigest()[:12]}.jsa")


def options(jars: Path, class_list: Path) -> list[str]:
    """Return the options of a JVM whose classpath begins with all these jars; without an archive it writes its list."""
    archive = archive_of(jars)
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:DumpLoadedClassList={class_list}"]


def is_there(pom: str) -> bool:
    """Return True if this machine has the archive for the jars of that POM."""
    return archive_of(folder_of(pom)).exists()


def build(jars: Path, class_lists: Path, classpath: str = "") -> None:
    """Archive the classes that the JVMs listed. The archive only saves time: if Java fails, there is none."""
    archive = archive_of(jars, classpath)
    classes = {line for class_list in class_lists.iterdir() for line in class_list.read_text().splitlines()}
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=".classes-") as scratch:
        union = Path(scratch) / "classes"
        union.write_text("\n".join(sorted(classes)))
        _dump(classpath or f"{jars}/*", union, Path(scratch) / "archive")
        if (Path(scratch) / "archive").exists():
            (Path(scratch) / "archive").replace(archive)


def _dump(classpath: str, classes: Path, archive: Path) -> None:
    command = [
        str(java_home() / "bin/java"),
        "-Xshare:dump",
        "-XX:+UseSerialGC",
        NO_COUNTERS,
        f"-XX:SharedClassListFile={classes}",
    ]
    subprocess.run(
        [*command, f"-XX:SharedArchiveFile={archive}", "-cp", classpath],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
