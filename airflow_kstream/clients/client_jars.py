"""The versions of jars, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")


def jar_versions(names: Iterable[str]) -> Mapping[str, str]:
    """Return the version of each artifact by the names of jars: `httpclient-4.5.14.jar` is httpclient's 4.5.14."""
    found = (match for name in names if (match := _JAR.fullmatch(name)))
    return {match["name"]: match["version"] for match in found}
