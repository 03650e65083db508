"""HDFS of a minicluster: formatting, failover, first folders, and its command line."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import requests

from airflow_kstream.minicluster.answers import not_serving, patiently
from airflow_kstream.minicluster.daemons import namenode_options
from airflow_kstream.minicluster.java import environment, hadoop, logging
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.web import bean, session_as
from airflow_kstream.model.errors import MiniclusterError

_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_HAADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
# A NameNode that has just become active, on a busy machine.
_WRITE_SECONDS = 60
# The NameNode to fail over from comes first: the active one, or one that does not answer; a standby takes over.
_FAILOVER_ORDER = {"active": 0, "standby": 2}
COMMANDS = {
    "dfs": "org.apache.hadoop.fs.FsShell",
    "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
    "haadmin": _HAADMIN,
    "fsck": "org.apache.hadoop.hdfs.tools.DFSck",
    "crypto": "org.apache.hadoop.hdfs.tools.CryptoAdmin",
    "debug": "org.apache.hadoop.hdfs.tools.DebugAdmin",
}


@dataclass(frozen=True)
class Directory:
    path: str
    owner: str
    group: str
    permission: str


def directories(site: Site) -> tuple[Directory, ...]:
    """Return the folders that a cluster's administrator creates before the first user arrives."""
    user = site.user
    return (
        Directory("/tmp", "hdfs", "supergroup", "1777"),
        # The NodeManager's own user refuses to aggregate into a folder without the sticky bit.
        Directory("/tmp/logs", "yarn", "hadoop", "1777"),
        Directory("/user", "hdfs", "supergroup", "755"),
        *(Directory(f"/user/{name}", name, name, "750") for name in (user, "supervisor", "gateway", "watcher")),
        # Where the pages' streams have their checkpoints.
        Directory("/data", user, user, "755"),
        # Closed: all may look, and none but supervisors and the users of streams may create anything in it.
        Directory("/kstream", "supervisor", "kstream", "1775"),
    )


def format_namenodes(site: Site) -> None:
    """Format an empty filesystem in nn1's folder and the shared journal, and copy it to the standby's folder."""
    first, *others = site.namenodes
    arguments = [_NAMENODE, *namenode_options(site, first), "-format", "-nonInteractive"]
    conf = site.folders.daemon_conf
    command = [*hadoop(site, conf, "format", *logging(site, "format")), *arguments]
    _ran(site, command, environment(site, conf)).check()
    for other in others:
        # Before anything was written, this is all that -bootstrapStandby would fetch.
        shutil.copytree(site.folders.data / first, site.folders.data / other)


def make_directories(site: Site) -> None:
    """Create the folders over WebHDFS, as the superuser."""
    port = f"{patiently(partial(active_namenode, site))}-web"
    with session_as(site, "hdfs") as session:
        for directory in directories(site):
            _put(session, f"{site.url(port)}/webhdfs/v1{directory.path}", op="MKDIRS", permission=directory.permission)
            _put(
                session,
                f"{site.url(port)}/webhdfs/v1{directory.path}",
                op="SETOWNER",
                owner=directory.owner,
                group=directory.group,
            )


def active_namenode(site: Site) -> str:
    """Return the name of the active NameNode. Raises MiniclusterError: when there is none."""
    states = {name: namenode_state(site, name) for name in site.namenodes}
    active = [name for name, state in states.items() if state == "active"]
    if not active:
        raise MiniclusterError(f"No NameNode is active: {states}")
    return active[0]


def namenode_state(site: Site, name: str) -> str:
    """Return `active`, `standby`, or the reason why the NameNode does not answer."""
    try:
        return str(bean(site, f"{name}-web", "service=NameNode,name=NameNodeStatus")["State"])
    except not_serving() as error:
        return f"no answer ({type(error).__name__})"


def fail_over(site: Site) -> str:
    """Make the other NameNode, or one of two standbys, the active one and return its name; use it in `kerberos_of`."""
    states = {name: namenode_state(site, name) for name in site.namenodes}
    if set(states.values()) == {"standby"}:
        # Both were started again: there is none to take over from, and -failover refuses one that is in safe mode.
        first = min(states)
        administer(site, "-transitionToActive", first)
        return first
    # If none is active, the other one replaces the first that does not answer.
    active, other = sorted(states, key=lambda name: _FAILOVER_ORDER.get(states[name], 1))
    administer(site, "-failover", active, other)
    return other


def administer(site: Site, *arguments: str) -> None:
    """Run `hdfs haadmin` with the daemons' fencing. Raises MiniclusterError: when it fails, with its output."""
    conf = site.folders.daemon_conf
    command = [*hadoop(site, conf, "haadmin", *logging(site, "haadmin")), _HAADMIN, *arguments]
    with_ticket(site, "hdfs", command, conf).check()


@dataclass(frozen=True)
class Ran:
    """The result of a Hadoop program."""

    completed: subprocess.CompletedProcess[str]

    def check(self) -> None:
        if self.completed.returncode:
            said = (self.completed.stderr or self.completed.stdout).strip().splitlines() or ["nothing"]
            raise MiniclusterError(f"A Hadoop program ended with {self.completed.returncode}: {said[-1]}")


def with_ticket(site: Site, name: str, command: list[str], conf: Path, stdin: int = subprocess.DEVNULL) -> Ran:
    """Run a program with a ticket of its own, which is deleted afterwards."""
    ticket = site.kdc.ticket(name)
    try:
        return _ran(site, command, {**environment(site, conf), "KRB5CCNAME": f"FILE:{ticket}"}, stdin)
    finally:
        ticket.unlink(missing_ok=True)


def _ran(site: Site, command: list[str], variables: dict[str, str], stdin: int = subprocess.DEVNULL) -> Ran:
    # It runs in the minicluster's own folder, so that `down` finds it if its starter is killed meanwhile.
    place = site.folders.run
    return Ran(subprocess.run(command, env=variables, cwd=place, capture_output=True, text=True, stdin=stdin))


def _put(session: requests.Session, url: str, **parameters: str) -> None:
    answer = session.put(url, params=parameters, timeout=_WRITE_SECONDS)
    if not answer.ok:
        raise MiniclusterError(f"WebHDFS refused {parameters['op']} of {url}: {answer.status_code} {answer.text[:300]}")
