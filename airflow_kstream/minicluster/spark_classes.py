"""Java's class data sharing for spark-submit, drivers and executors: a third to a half less CPU until the first batch.

A virtual environment's first minicluster runs a small local job, lists the classes that it loads, and archives them
beside PySpark's jars. JVMs use the archive if their classpath begins with these jars, in the same order.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from airflow_kstream.minicluster import class_archive
from airflow_kstream.minicluster.site import JAVA_BRISK, NO_COUNTERS, Site

# A slow machine under load needed 90 s for the job and the archive.
_PATIENCE_SECONDS = 600
_JOB = Path(__file__).with_name("spark_training.py")


def spark_home() -> Path | None:
    """Return the folder of this environment's PySpark, None without one."""
    spec = find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def spark_options() -> tuple[list[str], str]:
    """Return the options of Spark's JVMs and the start of their classpath; both are empty without an archive."""
    home = spark_home()
    if home is None or not _archive_of(home).exists():
        return [], ""
    return [f"-XX:SharedArchiveFile={_archive_of(home)}"], _classpath(home)


def _archive_of(home: Path) -> Path:
    return class_archive.archive_of(home / "jars", _classpath(home))


def _classpath(home: Path) -> str:
    """Return what the classpath of spark-submit begins with (SPARK_PRINT_LAUNCH_COMMAND shows it)."""
    jars = home / "jars"
    return os.pathsep.join([*(str(api) for api in sorted(jars.glob("slf4j-api-*.jar"))), f"{jars}/*"])


def is_archived() -> bool:
    """Return True if there is nothing to do: there is an archive, or no Spark."""
    home = spark_home()
    return home is None or _archive_of(home).exists()


def archive(site: Site) -> None:
    """Make the archive. While another process makes it, this one's first jobs go without: that takes minutes on a busy
    machine."""
    home = spark_home()
    if home is None:
        return
    with _alone(home) as alone:
        if alone and not is_archived():
            folder = site.folders.root / "spark-classes"
            (folder / "lists").mkdir(parents=True, exist_ok=True)
            # It only saves time: no failure of it keeps a minicluster from starting.
            with suppress(OSError, subprocess.TimeoutExpired):
                _train(home, folder)
                class_archive.build(home / "jars", folder / "lists", _classpath(home))


@contextmanager
def _alone(home: Path) -> Iterator[bool]:
    """Return whether no other process makes the archive."""
    lock = os.open(home, os.O_RDONLY)
    try:
        yield _locked(lock)
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _train(home: Path, folder: Path) -> None:
    """Run the job; if it fails, the list is shorter or there is none. Raises TimeoutExpired: when it hangs."""
    java = [*JAVA_BRISK, f"-XX:DumpLoadedClassList={folder}/lists/driver", f"-Djava.io.tmpdir={folder}"]
    command = [str(home / "bin/spark-submit"), "--master", "local[1]", "--driver-class-path", _classpath(home)]
    command += ["--driver-java-options", " ".join(java), "--conf", "spark.ui.enabled=false", str(_JOB)]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "LANG": "C.UTF-8"}
    environment["SPARK_LAUNCHER_OPTS"] = NO_COUNTERS
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    variables = {**environment, "PATH": path, "HOME": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    subprocess.run(
        [*command, str(folder / "checkpoint")],
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=_PATIENCE_SECONDS,
    )
