"""The two recoverers, which request recoveries and understand the same answers."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from getpass import getuser
from pathlib import Path
from shlex import join

import pytest

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.lease_recovery_native import Answer, NativeRecoverer
from airflow_kstream.minicluster import Minicluster, record
from airflow_kstream.minicluster.java import hadoop
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.lease_recovery import Outcome, Recovery
from tests.live.odd_names import ODD_NAMES
from tests.live.recovering import HOME, Scene, new_folder, outcomes, scene, stuck, the_one
from tests.live.streams import await_that
from tests.live.writers import leave_open

_DEBUG_ADMIN = "org.apache.hadoop.hdfs.tools.DebugAdmin"


@pytest.fixture
def streamer(minicluster: Minicluster) -> Iterator[Scene]:
    with scene(minicluster) as found:
        yield found


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> str:
    return new_folder(request.node.originalname)


def test_a_paused_namenode_is_not_waited_for_for_ever(minicluster: Minicluster, streamer: Scene, folder: str) -> None:
    (path,) = stuck(minicluster, folder, 1)
    active = minicluster.active_namenode()
    with closing(NativeRecoverer(streamer.cluster, streamer.identity, seconds=3)) as recoverer:
        minicluster.pause(active)
        try:
            started = time.monotonic()
            (silence,) = recoverer.request_recovery([path])
            took = time.monotonic() - started
        finally:
            minicluster.resume(active)
        await_that(lambda: isinstance(recoverer.request_recovery([path])[0], bool), "it answers again")
    assert isinstance(silence, Unavailable)
    assert "no answer within 3 s" in silence.message
    assert took < 30


@pytest.fixture
def hdfs_command(minicluster: Minicluster, tmp_path: Path) -> str:
    """Write the command `hdfs` of a Hadoop client, as far as `debug` needs it."""
    script = tmp_path / "hdfs"
    java = join([*hadoop(record.read_site(minicluster.root), minicluster.conf_dir, "client")])
    script.write_text(f'#!/bin/sh\n[ "$1" = debug ] || exit 64\nshift\nexec {java} {_DEBUG_ADMIN} "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def debug(hdfs_command: str) -> Callable[[Cluster, Identity], DebugRecoverer]:
    return lambda found, identity: DebugRecoverer(found, identity, binary=hdfs_command)


def test_hadoops_own_tool_leads_to_the_same_recovery(
    minicluster: Minicluster, streamer: Scene, folder: str, debug: Callable[[Cluster, Identity], DebugRecoverer]
) -> None:
    ours, theirs = stuck(minicluster, folder, 2)
    native = the_one(streamer.recover(streamer.targets([ours])))
    by_tool = the_one(streamer.recover(streamer.targets([theirs]), recoverer=debug))
    apart = {"path", "started", "seconds", "stamp_before", "stamp_after"}
    assert _but(native, apart) == _but(by_tool, apart)
    assert by_tool.outcome is Outcome.CLOSED


def _but(recovery: Recovery, names: set[str]) -> dict[str, object]:
    return {name: value for name, value in recovery.to_json().items() if name not in names}


def test_both_recoverers_understand_the_same_answers(
    minicluster: Minicluster, streamer: Scene, folder: str, debug: Callable[[Cluster, Identity], DebugRecoverer]
) -> None:
    first, second, closed = stuck(minicluster, folder, 3)
    minicluster.hdfs("dfs", "-touchz", "/only-root")
    assert outcomes(streamer.recover(streamer.targets([closed]))) == {Outcome.CLOSED: 1}
    others = [closed, f"{folder}/missing", folder]
    with closing(NativeRecoverer(streamer.cluster, streamer.identity)) as recoverer:
        native = recoverer.request_recovery([first, *others])
    with closing(debug(streamer.cluster, streamer.identity)) as tool:
        by_tool = tool.request_recovery([second, *others])
    assert [_kind(answer) for answer in native] == [False, True, NotFound, NotFound]
    assert [_kind(answer) for answer in by_tool] == [False, True, NotFound, NotFound]


@contextmanager
def open_to_all(minicluster: Minicluster, *folders: str) -> Iterator[None]:
    """Let every user pass through the folders."""
    minicluster.hdfs("dfs", "-chmod", "o+x", *folders)
    try:
        yield
    finally:
        minicluster.hdfs("dfs", "-chmod", "o-x", *folders)


def test_another_users_file_is_denied_and_stays_as_it_is(
    minicluster: Minicluster, streamer: Scene, folder: str, debug: Callable[[Cluster, Identity], DebugRecoverer]
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    with open_to_all(minicluster, f"/user/{getuser()}", HOME, folder), scene(minicluster, "watcher") as watcher:
        run = watcher.recover(watcher.targets([path]))
        with closing(debug(watcher.cluster, watcher.identity)) as tool:
            (by_tool,) = tool.request_recovery([path])
    assert the_one(run).outcome is Outcome.DENIED
    assert isinstance(by_tool, Denied)
    assert "Permission denied: user=watcher, access=WRITE" in by_tool.message
    assert streamer.state(path).is_open


def test_hadoops_own_tool_does_not_accept_every_name(
    minicluster: Minicluster, streamer: Scene, folder: str, debug: Callable[[Cluster, Identity], DebugRecoverer]
) -> None:
    """Of the names that the other recoverer takes (test_recovery.py) it takes those that are valid URIs."""
    paths = [f"{folder}/{name}" for name in ODD_NAMES]
    leave_open(minicluster, paths, 10)
    run = streamer.recover(streamer.targets(paths), recoverer=debug)
    closed = [Path(recovery.path).name for recovery in run.recoveries if recovery.outcome is Outcome.CLOSED]
    assert closed == ["not-composed-e\u0301", "semi;colon%41+plus#hash?query=1", "..."]
    refused = [recovery for recovery in run.recoveries if recovery.outcome is Outcome.NOT_TRIED]
    assert len(closed) + len(refused) == len(ODD_NAMES)
    assert all("only accepts paths that are valid URIs" in recovery.why for recovery in refused)
    assert run.stopped == ""


def _kind(answer: Answer) -> object:
    return type(answer) if isinstance(answer, KstreamError) else answer


def test_the_tool_works_with_a_ticket_cache_of_its_own_and_leaves_nothing_behind(
    minicluster: Minicluster, streamer: Scene, folder: str, tmp_path: Path
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    spy = tmp_path / "spy"
    spy.write_text('#!/bin/sh\nenv >"$0.env"\nstat -c %a "${KRB5CCNAME#FILE:}" >"$0.mode"\nexit 1\n')
    spy.chmod(0o755)
    with closing(DebugRecoverer(streamer.cluster, streamer.identity, binary=str(spy))) as recoverer:
        assert isinstance(recoverer.request_recovery([path])[0], Unavailable)
    environment = dict(line.split("=", 1) for line in Path(f"{spy}.env").read_text().splitlines() if "=" in line)
    cache = Path(environment["KRB5CCNAME"].removeprefix("FILE:"))
    assert Path(f"{spy}.mode").read_text().strip() == f"{stat.S_IRUSR | stat.S_IWUSR:o}"
    assert not cache.parent.exists()
    assert environment["HADOOP_CONF_DIR"] == str(minicluster.conf_dir)
    assert "HADOOP_PROXY_USER" not in environment


def test_a_wrong_keytab_is_reported_as_such(minicluster: Minicluster, streamer: Scene, folder: str) -> None:
    wrong = Identity(minicluster.principal("streamer"), keytab=str(minicluster.keytab("watcher")))
    with closing(NativeRecoverer(streamer.cluster, wrong)) as recoverer:
        (answer,) = recoverer.request_recovery([f"{folder}/any"])
    assert isinstance(answer, CredentialError)


def test_a_user_that_cannot_be_impersonated_is_refused_before_any_request(
    streamer: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="HADOOP_PROXY_USER"):
        NativeRecoverer(streamer.cluster, replace(streamer.identity, do_as="watcher"))
    monkeypatch.setenv("HADOOP_PROXY_USER", "watcher")
    with pytest.raises(InvalidInput, match="HADOOP_PROXY_USER"):
        NativeRecoverer(streamer.cluster, streamer.identity)


def test_a_client_that_is_not_installed_is_named(streamer: Scene) -> None:
    with pytest.raises(InvalidInput, match="there is no program /no/such/hdfs here"):
        DebugRecoverer(streamer.cluster, streamer.identity, binary="/no/such/hdfs")


def test_a_process_with_a_silent_namenode_can_still_end(minicluster: Minicluster, streamer: Scene, folder: str) -> None:
    """Threads that wait for the NameNode for ever must not keep the interpreter alive."""
    program = (
        "import hdfs_native, sys\n"
        "from airflow_kstream.clients.hdfs.lease_recovery_native import _Crew\n"
        "class Silent:\n"
        "    def recover_lease(self, path):\n"
        "        import threading; threading.Event().wait()\n"
        "print(_Crew(Silent(), 2).ask(['/a', '/b', '/c'], 0.2))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "{}\n")
