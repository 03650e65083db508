"""Which Spark a client of this host runs. It is asked: a distribution's spark-submit is a script around another one.

The names of jars tell their versions. The text of a script shows the variables that it takes from its environment:
nothing is expanded or run. A variable with a default (`${NAME:-value}`), one that the script sets itself, and one that
only a single-quoted text or a comment names, does not count.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow_kstream.clients.client_process import run_client
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.local.regular_files import read_regular
from airflow_kstream.clients.spark import local_environment
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import InvalidInput, SubmissionFailed
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.streams.installations import SparkInstallation

_FIRST_LINE = re.compile(r"#!\s*\S*(?:\s+(?:\S*/)?)?\S*sh\b")
# Without these: an escaped character, a single-quoted text, a comment. A double-quoted text keeps its quotes.
_SILENT = re.compile(r"""\\.|'[^']*'|(?:^|(?<=[\s;&|(]))\#[^\n]*|(?P<double>"(?:\\.|[^"\\])*")""", re.DOTALL)
# By convention names of an environment are in capitals, and a script's own are not.
_READ = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)(?!:?[-=+]|\w)|([A-Z][A-Z0-9_]*))")
_SET = re.compile(r"(?<![\w.$/{-])([A-Za-z_]\w*)\+?=|\b(?:for|read(?:\s+-\w+)*)\s+([A-Za-z_]\w*)")
_SOURCED = re.compile(r"(?:^|[;&|]|\bthen|\belse)[ \t]*(?:\.|source)[ \t]+([^\s;&|]+)", re.MULTILINE)
# What a shell sets itself.
_OF_THE_SHELL = re.compile(r"BASH\w*|FUNCNAME|HOSTNAME|HOSTTYPE|IFS|LINENO|MACHTYPE|OLDPWD|OSTYPE|PPID|PWD|RANDOM|UID")


@dataclass(frozen=True)
class ShellScript:
    """The variables that a script reads and sets, and the words that name what it sources, as they stand there."""

    reads: frozenset[str]
    sets: frozenset[str]
    sources: tuple[str, ...]


def is_shell_script(text: str) -> bool:
    return _FIRST_LINE.match(text) is not None


def shell_script(text: str) -> ShellScript:
    """Read a script of any shell of Bourne's family."""
    said = _SILENT.sub(lambda match: match["double"] or " ", text)
    reads = {name for match in _READ.finditer(said) if (name := match[1] or match[2])}
    named = frozenset(name for name in reads if not _OF_THE_SHELL.fullmatch(name))
    return ShellScript(named, frozenset(_assigned(said)), tuple(match[1] for match in _SOURCED.finditer(said)))


def _assigned(said: str) -> Iterator[str]:
    yield from (match[1] or match[2] for match in _SET.finditer(said))


# What names the Hadoop client among jars, the first that is there.
_HADOOP = ("hadoop-client-api", "hadoop-common", "hadoop-client")
_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")


def jar_versions(names: Iterable[str]) -> Mapping[str, str]:
    """Return the version of each artifact by the names of jars: `httpclient-4.5.14.jar` is httpclient's 4.5.14.

    The first of two jars of one artifact counts, as for a JVM whose class path this is.
    """
    found: dict[str, str] = {}
    for name in names:
        if match := _JAR.fullmatch(name):
            found.setdefault(match["name"], match["version"])
    return found


def hadoop_in(versions: Mapping[str, str]) -> HadoopVersion | None:
    """Return the version of Hadoop's client among jars; None if no jar's name tells it."""
    found = next((versions[name] for name in _HADOOP if name in versions), None)
    return HadoopVersion(found) if found else None


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
# A client's path, which file with which modification time it leads to, and its environment: a script chooses by that.
_Key = tuple[str, int, int, int, frozenset[tuple[str, str]]]
_NOTHING: Mapping[str, str] = {}
_answers: dict[_Key, SparkInstallation] = {}
_asking = threading.Lock()
# A script around Spark has some dozens of lines.
_LONGEST_SCRIPT, _MOST_SCRIPTS = 64 << 10, 8
_EXPANDED = re.compile(r"[$`*?\[]")


def installation(binary: str, added: Mapping[str, str] = _NOTHING) -> SparkInstallation:
    """Ask the client, once in this process while its file stays the same. It starts a JVM, which takes seconds.

    `added` is what its connection adds to its environment.

    Of one that does not answer as Spark does, only its version and what its folder shows are known. One that can't be
    started now, or does not answer within two minutes, is asked again the next time.
    """
    key = _key(binary, added)
    with _asking:
        if key not in _answers:
            told = _told(binary, added)
            found = told if told.home else _beside(binary) or told
            if found.trouble:
                return found
            _answers[key] = found
    return _answers[key]


def known_installation(binary: str, added: Mapping[str, str] = _NOTHING) -> SparkInstallation | None:
    """Return what the client told before, or else what its folder shows, without starting it; None if neither."""
    return _answers.get(_key(binary, added)) or _beside(binary)


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


def script_variables(binary: str) -> frozenset[str]:
    """Return the variables that a distribution's script around Spark takes from its environment, by its text.

    It is read with the files of its own folder and of absolute paths that it sources, and never run; so is nothing that
    it starts. Spark's own spark-submit needs none, and another kind of program tells none.

    Raises InvalidInput: when the script can't be read, is not a regular file, or is longer than a distribution's are.
    """
    program = Path(binary).resolve()
    if is_sparks_own(program) or not is_shell_script(text := _text(program)):
        return frozenset()
    scripts = {program: shell_script(text)}
    ahead = [*scripts[program].sources]
    while ahead and len(scripts) < _MOST_SCRIPTS:
        path = _sourced(ahead.pop(0), program.parent)
        if path and path not in scripts:
            # One that is not there is not sourced either, or nobody may read it.
            with suppress(InvalidInput):
                scripts[path] = shell_script(_text(path))
                ahead += scripts[path].sources
    read: frozenset[str] = frozenset().union(*(script.reads for script in scripts.values()))
    return read.difference(*(script.sets for script in scripts.values()))


def _text(path: Path) -> str:
    try:
        return read_regular(path, _LONGEST_SCRIPT)[0].decode(errors="replace")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be read: {error}", tried="read the client's script") from error


def _sourced(word: str, folder: Path) -> Path | None:
    """Return the file that a script sources by this word; None if only running it tells: its name is a variable's."""
    plain = word.replace('"', "")
    if plain.startswith("/") and not _EXPANDED.search(plain):
        return Path(plain)
    name = plain.rpartition("/")[2]
    return folder / name if name and not _EXPANDED.search(name) else None


def _key(binary: str, added: Mapping[str, str]) -> _Key:
    variables = frozenset(added.items())
    try:
        found = Path(binary).stat()
    except OSError:
        return binary, 0, 0, 0, variables
    return binary, found.st_dev, found.st_ino, found.st_mtime_ns, variables


def _told(binary: str, added: Mapping[str, str]) -> SparkInstallation:
    environment = {**local_environment(binary, added), "SPARK_PRINT_LAUNCH_COMMAND": "1"}
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
    if not is_sparks_own(program) or not any((home / "jars").glob("spark-core_*.jar")):
        return None
    return _described(binary, home, str(home / "conf"), [f"{home}/jars/*"])


def is_sparks_own(program: Path) -> bool:
    """Return whether it is a bin/spark-submit of Spark's, and no script of a distribution's around it."""
    return program.name == "spark-submit" and (program.parent / "spark-class").is_file()


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
