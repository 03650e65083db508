"""The jars of a Spark client: their versions by name, and the defaults of Hadoop that lie in them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_kstream.model.cluster_facts import Property
from airflow_kstream.model.errors import InvalidInput

_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")
# The jars that carry Hadoop's defaults: shaded as Spark ships it, or one by one in a distribution.
_WITH_DEFAULTS = ("hadoop-client-api", "hadoop-common", "hadoop-hdfs-client", "hadoop-yarn-common")
_DEFAULTS = ("core-default.xml", "hdfs-default.xml", "yarn-default.xml")


def versions_in(names: Iterator[str]) -> Mapping[str, str]:
    """Return the version of each artifact by the names of jars: `httpclient-4.5.14.jar` is httpclient's 4.5.14."""
    found = (match for name in names if (match := _JAR.fullmatch(name)))
    return {match["name"]: match["version"] for match in found}


def jar_versions(folder: Path) -> Mapping[str, str]:
    """Return the version of each artifact whose jar lies in the folder; none if there is no such folder."""
    return versions_in(jar.name for jar in folder.glob("*.jar"))


def hadoop_defaults(folder: Path, versions: Mapping[str, str]) -> Mapping[str, Property]:
    """Return the defaults of the Hadoop client in the folder, each with the file in the jar that has it.

    Raises InvalidInput: when no jar has them, or one can't be read.
    """
    jars = [folder / f"{name}-{versions[name]}.jar" for name in _WITH_DEFAULTS if name in versions]
    defaults = {key: value for jar in jars for key, value in _defaults_of(jar)}
    if not defaults:
        raise InvalidInput(f"{folder} has no jar with Hadoop's defaults")
    return defaults


def _defaults_of(jar: Path) -> Iterator[tuple[str, Property]]:
    try:
        with zipfile.ZipFile(jar) as opened:
            for name in set(_DEFAULTS) & set(opened.namelist()):
                for one in ElementTree.fromstring(opened.read(name)).iter("property"):
                    key, value = one.findtext("name"), one.findtext("value")
                    if key and value is not None:
                        yield key.strip(), Property(value, name)
    except (OSError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise InvalidInput(f"{jar} can't be read: {error}") from None
