"""Servers that answered a moment ago, and do no longer."""

from __future__ import annotations

from airflow_kstream.model.errors import Unavailable
from tests.simulated.servers import SimHdfs, SimYarn


class SilentYarn(SimYarn):
    """A ResourceManager that is away."""

    def user(self) -> str | None:
        return None

    def active(self) -> str:
        raise Unavailable("connection refused", tried="ask the ResourceManager who it is")


class SilentHdfs(SimHdfs):
    """NameNodes that are away."""

    def user(self) -> str:
        raise Unavailable("connection refused", tried="ask for our short name")
