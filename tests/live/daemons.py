"""The daemons of a minicluster and what runs on them, as processes of this machine and as web servers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import requests
import spnego
from requests_kerberos import OPTIONAL, HTTPKerberosAuth

from airflow_kstream.minicluster import Minicluster
from tests.live.sleepers import submit_tagged

PATIENCE = 180


def until(what: Callable[[], Any]) -> Any:
    """Return the first true answer; fail when there is none within PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := what()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)
    return answer


def session_as(minicluster: Minicluster, name: str) -> requests.Session:
    keytab = spnego.KerberosKeytab(keytab=str(minicluster.keytab(name)), principal=minicluster.principal(name))
    session = requests.Session()
    session.auth = HTTPKerberosAuth(mutual_authentication=OPTIONAL, principal=keytab)
    return session


def processes_of(root: Path) -> list[psutil.Process]:
    """Return all processes that work in the minicluster's folder."""
    return [process for process in psutil.process_iter() if works_in(root, process)]


def works_in(root: Path, process: psutil.Process) -> bool:
    try:
        return process.cwd().startswith(f"{root}/")
    except psutil.Error:
        return False


def listening_on(process: psutil.Process) -> list[str]:
    """Return the addresses that the process listens on; none if it has ended."""
    try:
        return [one.laddr.ip for one in process.net_connections() if one.status == psutil.CONN_LISTEN]
    except psutil.NoSuchProcess:
        return []


def submit_sleeper(resourcemanager: str, session: requests.Session) -> str:
    """Submit an application whose only container sleeps, and return its id."""
    return submit_tagged(resourcemanager, session, "sleeper", command="sleep 299")


def sleeping(minicluster: Minicluster) -> list[psutil.Process]:
    return [process for process in processes_of(minicluster.root) if sleeps(process)]


def sleeps(process: psutil.Process) -> bool:
    try:
        return process.cmdline() == ["sleep", "299"]
    except psutil.Error:
        return False
