"""The versions of jars, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from airflow_kstream.model.clusters.hadoop_version import HadoopVersion

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
