"""Adding realms to this process, choosing a child's krb5.conf, and reading `[libdefaults]`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock

from airflow_kstream.clients.local.regular_files import read_text

_KRB5_CONFIG = "KRB5_CONFIG"
_SYSTEM = "/etc/krb5.conf"
_AMBIENT = os.environ.get(_KRB5_CONFIG)
_LOCK = Lock()
_SECTION, _RELATION = re.compile(r"\[(\w+)\]"), re.compile(r"([\w.-]+)\s*=\s*(.*)")
_INCLUDED = re.compile(r"(?P<kind>include|includedir)\s+(?P<path>/.*)")
_INCLUDED_NAME, _DEEPEST = re.compile(r"[\w-]+|[^.].*\.conf"), 10


def know_realms_of(krb5_conf: str | None) -> None:
    """Add the realms of this krb5.conf to those that libkrb5 knows in this process; None adds nothing.

    libkrb5 takes a list of files from the environment and merges them: realms and hosts of several clusters live side
    by side. If two files contradict each other, the first counts: the one needed most recently.
    """
    if krb5_conf is None:
        return
    with _LOCK:
        known = os.environ.get(_KRB5_CONFIG, _SYSTEM if Path(_SYSTEM).exists() else "").split(":")
        others = [file for file in known if file and file != krb5_conf]
        os.environ[_KRB5_CONFIG] = ":".join([krb5_conf, *others])


def krb5_conf_of_a_child(krb5_conf: str | None) -> str | None:
    """Return one file, as Java merges none: the cluster's own, else this process's first; None: the system's."""
    return krb5_conf or _AMBIENT


def libdefaults(krb5_conf: str | None) -> Mapping[str, str]:
    """Return `[libdefaults]` of one file with the files that it includes; of several values the first counts.

    None stands for the system's file. Raises InvalidInput: when a file can't be read.
    """
    values: dict[str, str] = {}
    for section, key, value in _relations(Path(krb5_conf or _SYSTEM)):
        if section == "libdefaults":
            values.setdefault(key, value)
    return values


def _relations(path: Path, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each line outside of braces, as libkrb5's profile library reads them."""
    section, braces = "", 0
    for line in map(str.strip, read_text(path).splitlines()):
        if included := _INCLUDED.fullmatch(line):
            if depth < _DEEPEST:
                for other in _files_of(included):
                    yield from _relations(other, depth + 1)
        elif heading := _SECTION.match(line):
            section, braces = heading[1], 0
        elif line.endswith("{") or line == "}":
            braces += 1 if line.endswith("{") else -1
        elif (relation := _RELATION.fullmatch(line)) and not braces:
            yield section, relation[1], relation[2].strip().strip('"')


def _files_of(included: re.Match[str]) -> list[Path]:
    path = Path(included["path"])
    if included["kind"] == "include":
        return [path]
    # As in prof_parse.c: hidden files, and those of editors and packages, are left out.
    return sorted(each for each in path.glob("*") if _INCLUDED_NAME.fullmatch(each.name) and each.is_file())
