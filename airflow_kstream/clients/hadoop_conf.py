"""The addresses in a Hadoop conf folder."""

from __future__ import annotations

import os
import pwd
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from airflow_kstream.model.errors import InvalidInput

if TYPE_CHECKING:
    from airflow_kstream.model.clusters.cluster import Cluster

_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")
_RPC_PORT, _RESOURCEMANAGER_RPC_PORT = 8020, 8032
# org.apache.hadoop.conf.Configuration: MAX_SUBST, findSubVariable, and the words that it reads from the environment.
_DEEPEST = 20
_REFERENCE = re.compile(r"\$\{([^}$ ]+)\}")
_ENVIRONMENT = re.compile(r"(?P<name>.*?)(?:(?P<or_empty>:)?-(?P<default>.*))?", re.DOTALL)
_JAVA_PROPERTIES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "user.name": lambda: _of_this_user("pw_name"),
        "user.home": lambda: _of_this_user("pw_dir"),
        "java.io.tmpdir": lambda: "/tmp",
    }
)
_INCLUDE, _FALLBACK = ("{http://www.w3.org/2001/XInclude}" + name for name in ("include", "fallback"))


class _Property(NamedTuple):
    name: str
    value: str
    final: bool


class HadoopConf:
    """The properties of core-, hdfs- and yarn-site.xml, without Hadoop's own defaults."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._properties: dict[str, str] = {}
        final: set[str] = set()
        for name in _FILES:
            for entry in _read(Path(folder) / name):
                if entry.name not in final:
                    self._properties[entry.name] = entry.value
                if entry.final:
                    final.add(entry.name)

    def get(self, key: str, default: str = "") -> str:
        """Return the value as Hadoop's Configuration.getTrimmed does, with each `${...}` in it resolved.

        One that refers to nothing stays as it is. Raises InvalidInput: when they refer to each other without end.
        """
        return self._resolved(key).strip() or default

    def names(self) -> frozenset[str]:
        """Return the names of all properties that are set."""
        return frozenset(self._properties)

    @property
    def default_fs(self) -> str:
        return self._need("fs.defaultFS").rstrip("/")

    def namenodes(self) -> tuple[str, ...]:
        """Return the base URLs of the web servers of the default filesystem's NameNodes."""
        scheme = "https" if self.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
        key = f"dfs.namenode.{scheme}-address"
        service = self.default_fs.removeprefix("hdfs://")
        members = self.get(f"dfs.ha.namenodes.{service}")
        suffixes = [f".{service}.{member.strip()}" for member in members.split(",")] if members else [""]
        return tuple(f"{scheme}://{self._need(key + suffix)}" for suffix in suffixes)

    def namenode_rpcs(self, filesystem: str = "") -> tuple[str, ...]:
        """Return host:port of a filesystem's NameNodes' RPC servers for clients, not those for services.

        Without one it is the default filesystem.
        """
        filesystem = filesystem or self.default_fs
        scheme, _, service = filesystem.partition("://")
        if scheme != "hdfs":
            raise InvalidInput(f"{filesystem} has no NameNodes; only an hdfs:// filesystem does")
        key = f"dfs.namenode.rpc-address.{service}"
        if members := self._members(service):
            return tuple(self._need(f"{key}.{member.strip()}") for member in members.split(","))
        return (self.get(key) or (service if ":" in service else f"{service}:{_RPC_PORT}"),)

    def is_pair(self, filesystem: str) -> bool:
        """Return whether the filesystem's name is that of a nameservice, behind which several NameNodes stand."""
        return bool(self._members(filesystem.removeprefix("hdfs://")))

    def _members(self, service: str) -> str:
        return self.get(f"dfs.ha.namenodes.{service}")

    @property
    def namenode_principal(self) -> str:
        """Return the principal as written: `_HOST` in it stands for each NameNode's own name."""
        return self._principal_of("dfs.namenode.kerberos.principal", "NameNode")

    def _principal_of(self, key: str, kind: str) -> str:
        principal = self.get(key)
        if not principal:
            raise InvalidInput(f"{self._folder} has no {key}: no {kind} could prove itself")
        return principal

    @property
    def key_provider(self) -> str:
        """Return where the keys of encryption zones are, empty if there are none here."""
        return self.get("hadoop.security.key.provider.path")

    @property
    def rpc_protection(self) -> str:
        return self.get("hadoop.rpc.protection", "authentication")

    def resourcemanager_rpcs(self) -> tuple[str, ...]:
        """Return host:port of the ResourceManagers' RPC servers for clients."""
        members = self.get("yarn.resourcemanager.ha.rm-ids")
        suffixes = [f".{member.strip()}" for member in members.split(",")] if members else [""]
        return tuple(self._resourcemanager_rpc(suffix) for suffix in suffixes)

    def _resourcemanager_rpc(self, suffix: str) -> str:
        named = self.get(f"yarn.resourcemanager.address{suffix}")
        return named or f"{self._need(f'yarn.resourcemanager.hostname{suffix}')}:{_RESOURCEMANAGER_RPC_PORT}"

    @property
    def resourcemanager_principal(self) -> str:
        """Return the principal as written: `_HOST` in it stands for each ResourceManager's own name."""
        return self._principal_of("yarn.resourcemanager.principal", "ResourceManager")

    def resourcemanagers(self) -> tuple[str, ...]:
        """Return the base URLs of the ResourceManagers' web servers."""
        https = self.get("yarn.http.policy") == "HTTPS_ONLY"
        scheme, infix = ("https", "https.") if https else ("http", "")
        key = f"yarn.resourcemanager.webapp.{infix}address"
        members = self.get("yarn.resourcemanager.ha.rm-ids")
        suffixes = [f".{member.strip()}" for member in members.split(",")] if members else [""]
        return tuple(f"{scheme}://{self._need(key + suffix)}" for suffix in suffixes)

    def _need(self, key: str) -> str:
        value = self.get(key)
        if not value:
            raise InvalidInput(f"{self._folder} has no {key}; give the address in the connection instead")
        return value

    def _resolved(self, key: str) -> str:
        """Resolve references as Configuration.substituteVars does: the innermost first, repeatedly."""
        unresolved = value = self._properties.get(key, "")
        for _ in range(_DEEPEST):
            reference = _REFERENCE.search(value)
            replacement = self._meant_by(reference[1]) if reference else None
            if reference is None or replacement is None:
                return value
            if reference[0] in replacement:
                # It refers to itself.
                return unresolved
            value = value[: reference.start()] + replacement + value[reference.end() :]
        raise InvalidInput(f"{self._folder}: {key} is {unresolved!r}, which refers on more than {_DEEPEST} times")

    def _meant_by(self, name: str) -> str | None:
        if name.startswith("env.") and name != "env.":
            value = _of_the_environment(name.removeprefix("env."))
        else:
            value = _JAVA_PROPERTIES[name]() if name in _JAVA_PROPERTIES else None
        return self._properties.get(name) if value is None else value


def rpc_conf(cluster: Cluster) -> HadoopConf:
    """Return the folder with the servers' RPC addresses. Raises InvalidInput: when the connection names none."""
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} needs a hadoop_conf_dir with the servers' RPC addresses")
    return HadoopConf(cluster.hadoop_conf_dir)


def _of_this_user(field: str) -> str:
    try:
        return str(getattr(pwd.getpwuid(os.getuid()), field))
    except KeyError:
        # Java's answer for a user id without a name.
        return "?"


def _of_the_environment(words: str) -> str | None:
    """Resolve `NAME`, `NAME-default` (used if it is not set) or `NAME:-default` (used if it is not set or empty)."""
    match = _ENVIRONMENT.fullmatch(words)
    assert match
    value = os.environ.get(match["name"])
    if match["default"] is None or (value if match["or_empty"] else value is not None):
        return value
    return match["default"]


def _read(path: Path) -> list[_Property]:
    try:
        return list(_properties(ElementTree.parse(path).getroot(), path))
    except FileNotFoundError:
        return []
    except (OSError, ElementTree.ParseError) as error:
        raise InvalidInput(f"{path} can't be read as a Hadoop configuration: {error}") from error


def _properties(within: ElementTree.Element, path: Path, depth: int = 0) -> Iterator[_Property]:
    for element in within:
        if element.tag == _INCLUDE:
            yield from _included(element, path, depth)
        elif element.tag == "configuration":
            yield from _properties(element, path, depth)
        elif element.tag == "property":
            name, value, final = (_field(element, field) for field in ("name", "value", "final"))
            # Hadoop treats a property without a value as missing.
            if name.strip() and value:
                yield _Property(name.strip(), value, final.strip() == "true")


def _field(element: ElementTree.Element, name: str) -> str:
    return element.findtext(name) or element.get(name) or ""


def _included(element: ElementTree.Element, path: Path, depth: int) -> Iterator[_Property]:
    href = element.get("href", "")
    if "://" in href or depth >= _DEEPEST:
        raise InvalidInput(f"{path} includes {href!r}; allowed are files of this host that don't include each other")
    other = path.parent / href.removeprefix("file:")
    if other.is_file():
        yield from _properties(ElementTree.parse(other).getroot(), other, depth + 1)
        return
    fallback = element.find(_FALLBACK)
    if fallback is None:
        raise InvalidInput(f"{path} includes {href!r}, which is not a file")
    yield from _properties(fallback, path, depth)
