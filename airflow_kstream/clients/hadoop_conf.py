"""Addresses out of a Hadoop conf folder."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from airflow_kstream.model.errors import InvalidInput

_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")
_RPC_PORT = 8020


class HadoopConf:
    """The properties of core-, hdfs- and yarn-site.xml, defaults not included."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._properties: dict[str, str] = {}
        for name in _FILES:
            self._properties |= _read(Path(folder) / name)

    @property
    def default_fs(self) -> str:
        return self._need("fs.defaultFS").rstrip("/")

    def namenodes(self) -> tuple[str, ...]:
        """Base URLs of the default filesystem's NameNodes' web servers."""
        scheme = "https" if self._properties.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
        key = f"dfs.namenode.{scheme}-address"
        service = self.default_fs.removeprefix("hdfs://")
        members = self._properties.get(f"dfs.ha.namenodes.{service}")
        suffixes = [f".{service}.{member.strip()}" for member in members.split(",")] if members else [""]
        return tuple(f"{scheme}://{self._need(key + suffix)}" for suffix in suffixes)

    def namenode_rpcs(self) -> tuple[str, ...]:
        """host:port of the default filesystem's NameNodes' RPC servers for clients, not those for services."""
        scheme, _, service = self.default_fs.partition("://")
        if scheme != "hdfs":
            raise InvalidInput(f"fs.defaultFS is {self.default_fs}; only an hdfs:// filesystem has NameNodes")
        key = f"dfs.namenode.rpc-address.{service}"
        if members := self._properties.get(f"dfs.ha.namenodes.{service}"):
            return tuple(self._need(f"{key}.{member.strip()}") for member in members.split(","))
        return (self._properties.get(key) or (service if ":" in service else f"{service}:{_RPC_PORT}"),)

    @property
    def namenode_principal(self) -> str:
        """As it is written: `_HOST` in it stands for each NameNode's own name."""
        key = "dfs.namenode.kerberos.principal"
        if key not in self._properties:
            raise InvalidInput(f"{self._folder} has no {key}: no NameNode could prove itself")
        return self._properties[key]

    @property
    def rpc_protection(self) -> str:
        return self._properties.get("hadoop.rpc.protection", "authentication")

    def resourcemanagers(self) -> tuple[str, ...]:
        """Base URLs of the ResourceManagers' web servers."""
        https = self._properties.get("yarn.http.policy") == "HTTPS_ONLY"
        scheme, infix = ("https", "https.") if https else ("http", "")
        key = f"yarn.resourcemanager.webapp.{infix}address"
        members = self._properties.get("yarn.resourcemanager.ha.rm-ids")
        suffixes = [f".{member.strip()}" for member in members.split(",")] if members else [""]
        return tuple(f"{scheme}://{self._need(key + suffix)}" for suffix in suffixes)

    def _need(self, key: str) -> str:
        value = self._properties.get(key)
        if value is None:
            raise InvalidInput(f"{self._folder} has no {key}; give the address in the connection instead")
        return value


def _read(path: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(path).getroot()
    except FileNotFoundError:
        return {}
    except (OSError, ElementTree.ParseError) as error:
        raise InvalidInput(f"{path} can't be read as a Hadoop configuration: {error}") from error
    pairs = ((prop.findtext("name"), prop.findtext("value")) for prop in root.iter("property"))
    return {name.strip(): (value or "").strip() for name, value in pairs if name}
