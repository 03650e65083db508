"""Which Spark a client of this host runs. It is asked: a distribution's spark-submit is a script around another one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from airflow_kstream.clients.client_jars import hadoop_in, jar_versions
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark import local_environment, run_client
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import InvalidInput, SubmissionFailed
from airflow_kstream.model.streams.spark_installation import SparkInstallation

# Spark's launcher puts this entry first on the class path, in place of what the client's defaults would have there, so
# that the conf folder is the next one (AbstractCommandBuilder.buildClassPath). In cluster mode it leaves it out.
_FIRST = "kstream"
_QUESTION = ("--driver-class-path", _FIRST, "--version")
# It takes two or three seconds, and ten times as long on a host that is busy.
_WITHIN = timedelta(minutes=2)
_LAUNCH = re.compile(rf"^Spark Command: .*? -cp (?:{_FIRST}:)?(.+?)(?: -.*)?$", re.MULTILINE)
_BANNER = re.compile(r"/_/\\_\\\s+version (\d\S*)")
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
# As java.util.Properties splits a line: at the first blank, = or :.
_DEFAULT = re.compile(r"\s*([^\s=:#!][^\s=:]*)(?:\s*[=:]|\s)\s*(.*)")
# A client's path, and which file with which modification time it leads to.
_Key = tuple[str, int, int, int]
_answers: dict[_Key, SparkInstallation] = {}
_asking = threading.Lock()


def installation(binary: str) -> SparkInstallation:
    """Ask the client, once in this process while its file stays the same. It starts a JVM, which takes seconds.

    Of one that does not answer as Spark does, only its version and what its folder shows are known. One that can't be
    started now, or does not answer within two minutes, is asked again the next time.
    """
    key = _key(binary)
    with _asking:
        if key not in _answers:
            told = _told(binary)
            found = told if told.home else _beside(binary) or told
            if found.trouble:
                return found
            _answers[key] = found
    return _answers[key]


def known_installation(binary: str) -> SparkInstallation | None:
    """Return what the client told before, or else what its folder shows, without starting it; None if neither."""
    return _answers.get(_key(binary)) or _beside(binary)


def client_defaults(client: SparkInstallation | None) -> Mapping[str, str]:
    """Return the confs of the client's own spark-defaults.conf, the last line for each; none if none is known.

    Raises InvalidInput: when it can't be read, which the client could not either.
    """
    file = Path(client.defaults_file) if client and client.defaults_file else None
    try:
        lines = file.read_text(errors="replace").splitlines() if file and file.is_file() else []
    except OSError as error:
        raise InvalidInput(f"{file} can't be read: {error.strerror}", tried="read the client's defaults") from error
    return {match[1]: match[2].strip() for line in lines if (match := _DEFAULT.fullmatch(line))}


def _key(binary: str) -> _Key:
    try:
        found = Path(binary).stat()
    except OSError:
        return binary, 0, 0, 0
    return binary, found.st_dev, found.st_ino, found.st_mtime_ns


def _told(binary: str) -> SparkInstallation:
    environment = {**local_environment(binary), "SPARK_PRINT_LAUNCH_COMMAND": "1"}
    try:
        with private_folder() as folder:
            code, said = run_client([binary, *_QUESTION], environment, folder, _WITHIN)
    except SubmissionFailed as error:
        return SparkInstallation(binary, trouble=error.without_advice)
    if code is None:
        return SparkInstallation(binary, trouble=f"it did not tell its version within {format_duration(_WITHIN)}")
    launch, banner = _LAUNCH.search(said), _BANNER.search(said)
    version = banner[1] if banner else ""
    conf_dir, *class_path = launch[1].split(":") if launch else [""]
    jars = next((Path(entry).parent for entry in class_path if entry.endswith("/*")), None)
    if jars is None or not jars.is_dir():
        # A script that passes no variable on, or starts Spark elsewhere.
        return SparkInstallation(binary, version=_numbers(version))
    return _described(binary, jars.parent, conf_dir, class_path, version)


def _beside(binary: str) -> SparkInstallation | None:
    """Return the Spark whose own bin/spark-submit this is. A folder of jars beside bin does not prove that: a parcel of
    Cloudera's has one, and scripts in its bin that start a Spark elsewhere."""
    program = Path(binary).resolve()
    home = program.parent.parent
    ours = program.name == "spark-submit" and (program.parent / "spark-class").is_file()
    if not ours or not any((home / "jars").glob("spark-core_*.jar")):
        return None
    return _described(binary, home, str(home / "conf"), [f"{home}/jars/*"])


def _described(
    binary: str, home: Path, conf_dir: str, class_path: Sequence[str], version: str = ""
) -> SparkInstallation:
    versions = jar_versions(_jars(class_path))
    core = next((versions[name] for name in versions if name.startswith("spark-core_")), "")
    return SparkInstallation(
        binary, str(home), conf_dir.rstrip("/"), tuple(class_path), _numbers(version or core), hadoop_in(versions)
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return Spark's major and minor number, nothing if the text tells none."""
    found = _NUMBERS.match(version)
    return (int(found[1]), int(found[2])) if found else ()


def _jars(class_path: Sequence[str]) -> Iterator[str]:
    """Yield the names of the jars. Distributions leave Hadoop's out of Spark's own folder, and name theirs after it."""
    for entry in map(Path, class_path):
        yield from sorted(jar.name for jar in entry.parent.glob("*.jar")) if entry.name == "*" else [entry.name]
