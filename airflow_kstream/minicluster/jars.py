"""The jars of a minicluster: fetched once from a registry, then kept in the user's cache.

What is fetched is written in `poms/`: a POM is for Maven, a file of requirements for pip. What it pins by its version,
the file of hashes beside it pins by content: a process that uses these jars compares all of them first, those from the
cache too.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from airflow_kstream.minicluster.config import FLINKS, Feature
from airflow_kstream.minicluster.sdists import copy_from_sdist
from airflow_kstream.minicluster.site import NO_COUNTERS
from airflow_kstream.minicluster.tools import tool
from airflow_kstream.model.errors import MiniclusterError

# Of the jars that differ.
_NAMED = 3
_ARCHITECTURES = {"x86_64": "Linux-amd64", "aarch64": "Linux-aarch64", "ppc64le": "Linux-ppc64le"}


def hadoop_jars() -> Path:
    """Return the folder with the jars of HDFS and YARN."""
    return _fetched("hadoop")


def kafka_jars() -> Path:
    """Return the folder with the jars of the Kafka broker and its command line tools."""
    return _fetched("kafka")


def kafka_connector_jars() -> tuple[Path, ...]:
    """Return the jars that a Structured Streaming job needs to read from and write to Kafka."""
    return tuple(sorted(_fetched("spark_kafka").glob("*.jar")))


def httpfs_jars() -> Path:
    """Return the folder with the jars that HttpFS needs beside those of HDFS."""
    return _fetched("httpfs")


def kms_jars() -> Path:
    """Return the folder with the jars that a KMS needs beside those of HDFS."""
    return _fetched("kms")


def flink_jars(feature: Feature) -> Path:
    """Return the folder with the jars of this Flink's distribution: its `lib`, without SQL."""
    return _fetched(str(feature))


def flink_connector_jars(feature: Feature) -> tuple[Path, ...]:
    """Return the jars that a job of this Flink needs to read from and write to Kafka."""
    return tuple(sorted(_fetched(f"{feature}-kafka").glob("*.jar")))


def native_library() -> Path:
    """Return the folder with libhadoop.so. Raises MiniclusterError: when there is none for this processor."""
    jar = next(_fetched("native").glob("*.jar"))
    folder = jar.parent / "lib"
    if not (folder / "libhadoop.so").exists():
        _unpack(jar, folder)
    return folder


def cache_folder() -> Path:
    """Return $XDG_CACHE_HOME/kstream, or ~/.cache/kstream."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kstream"


def tools_of_a_download(features: Collection[Feature]) -> tuple[str, ...]:
    """Return the programs that are needed while something has to be downloaded."""
    of_features = [str(feature) for feature in (Feature.HTTPFS, Feature.KMS) if feature in features]
    of_features += [f"{feature}-kafka" for feature in FLINKS if feature in features]
    poms = ["hadoop", "native", "kafka", "spark_kafka", *of_features]
    return () if are_cached(*poms) else ("mvn",)


def are_cached(*poms: str) -> bool:
    """Return True if the jars of these POMs need no download."""
    return all(folder_of(pom).is_dir() for pom in poms)


def pinned(pom: str) -> Mapping[str, str]:
    """Return the sha256 of each jar of this POM, by the jar's name."""
    words = (files(__package__) / "poms" / f"{pom}.sha256").read_text().split()
    return dict(zip(words[1::2], words[::2], strict=True))


def require_pinned(folder: Path, hashes: Mapping[str, str], pom: str) -> None:
    """Compare the jars in the folder with their hashes. Raises MiniclusterError: when one differs, naming the first."""
    if wrong := list(_wrong(folder, hashes, pom)):
        named = wrong[:_NAMED] + ([f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else [])
        raise MiniclusterError(f"Nothing of {folder} is used: {'; '.join(named)}")


def _wrong(folder: Path, hashes: Mapping[str, str], pom: str) -> Iterator[str]:
    there = {jar.name: jar for jar in folder.glob("*.jar")}
    for name in sorted({*hashes, *there}):
        if name not in there:
            yield f"{name} is missing"
            continue
        with there[name].open("rb") as jar:
            digest = hashlib.file_digest(jar, "sha256").hexdigest()
        if digest != hashes.get(name):
            yield f"{name} has the sha256 {digest}, and {pom}.sha256 says {hashes.get(name, 'nothing of it')}"


@cache
def _fetched(pom: str) -> Path:
    folder = folder_of(pom)
    if not folder.is_dir():
        _fetch(pom, folder)
        return folder
    try:
        require_pinned(folder, pinned(pom), pom)
    except MiniclusterError as error:
        raise MiniclusterError(f"{error.message}. Remove the folder: it is fetched again then") from None
    return folder


def folder_of(pom: str) -> Path:
    """Return the folder of this POM's jars once they are downloaded."""
    digest = hashlib.sha256(_recipe(pom).read_bytes()).hexdigest()
    return cache_folder() / f"{pom}-{digest[:12]}"


def _recipe(pom: str) -> Traversable:
    requirements = files(__package__) / "poms" / f"{pom}.txt"
    return requirements if requirements.is_file() else files(__package__) / "poms" / f"{pom}.xml"


def _fetch(pom: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{pom}-") as scratch:
        if _recipe(pom).name.endswith(".txt"):
            with as_file(_recipe(pom)) as requirements:
                copy_from_sdist(requirements, frozenset(pinned(pom)), Path(scratch) / "jars")
        else:
            _copy_dependencies(pom, Path(scratch) / "jars")
        keep(Path(scratch) / "jars", folder, pom)


def _copy_dependencies(pom: str, destination: Path) -> None:
    with as_file(_recipe(pom)) as file:
        command = [tool("mvn"), "-q", "-B", "-f", str(file), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={destination}", "-DincludeScope=runtime"],
            env=os.environ | {"MAVEN_OPTS": f"{os.environ.get('MAVEN_OPTS', '')} {NO_COUNTERS}".strip()},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    if done.returncode or not destination.is_dir():
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line] or [done.stderr.strip()]
        raise MiniclusterError(f"Maven could not fetch the jars of {pom}.xml: {errors[0]}")


def keep(fetched: Path, folder: Path, pom: str) -> None:
    """Move what was fetched to where it is used from. Raises MiniclusterError: when it is not what was pinned."""
    require_pinned(fetched, pinned(pom), pom)
    try:
        fetched.rename(folder)
    except OSError:
        # Another process was faster; its files have the same content.
        if not folder.is_dir():
            raise


def _unpack(jar: Path, folder: Path) -> None:
    architecture = _ARCHITECTURES.get(platform.machine())
    if not architecture:
        raise MiniclusterError(
            f"No libhadoop.so for {platform.machine()}; there is one for {', '.join(_ARCHITECTURES)}"
        )
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(jar) as archive, tempfile.NamedTemporaryFile(dir=folder, delete=False) as target:
        with archive.open(f"nativelib/{architecture}/libhadoop.so") as source:
            shutil.copyfileobj(source, target)
        Path(target.name).rename(folder / "libhadoop.so")
