"""The programs of the operating system that a minicluster needs."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

from airflow_kstream.model.errors import MiniclusterError

_PACKAGES = {
    "krb5kdc": "krb5-kdc",
    "kdb5_util": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "java": "default-jre-headless",
    "mvn": "maven",
}
# Debian keeps the KDC's programs where an ordinary user's PATH does not look.
SEARCH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"))


def tool(name: str) -> str:
    """Return the absolute path of a program. Raises MiniclusterError: when it is missing, with its Debian package."""
    found = _find(name)
    if not found:
        raise _missing([name])
    return found


def require(*names: str) -> None:
    """Check all programs before anything starts. Raises MiniclusterError: when some are missing, naming them all."""
    missing = [name for name in names if not _find(name)]
    if missing:
        raise _missing(missing)


@cache
def java_home() -> Path:
    """Return the folder that holds bin/java: JAVA_HOME if it does, else the home of the java on the PATH."""
    named = Path(os.environ.get("JAVA_HOME", ""))
    return named if (named / "bin/java").is_file() else Path(tool("java")).resolve().parent.parent


def _find(name: str) -> str | None:
    return shutil.which(name, path=SEARCH)


def _missing(names: list[str]) -> MiniclusterError:
    packages = " ".join(sorted({_PACKAGES[name] for name in names}))
    return MiniclusterError(f"Not installed: {', '.join(names)}. On Debian or Ubuntu: apt-get install {packages}")
