"""The minicluster is a real cluster: secured everywhere, on loopback only, and gone when it is taken down."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from getpass import getuser
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig, tools
from airflow_kstream.model.errors import InvalidInput, MiniclusterError
from airflow_kstream.model.kerberos.tokens import DelegationToken
from tests.live.daemons import PATIENCE, listening_on, processes_of, session_as, sleeping, submit_sleeper, until

CLI = [sys.executable, "-m", "airflow_kstream.minicluster"]
LISTING = (
    "import sys; from hdfs_native import Client; "
    "print(','.join(sorted(file.path for file in Client(sys.argv[1]).list_status('/'))))"
)


@pytest.fixture
def streamer(minicluster: Minicluster) -> Iterator[requests.Session]:
    with session_as(minicluster, "streamer") as session:
        yield session


def web(minicluster: Minicluster, daemon: str) -> str:
    """Return a daemon's HTTP address."""
    return (
        f"http://localhost:{json.loads((minicluster.root / 'minicluster.json').read_text())['ports'][f'{daemon}-web']}"
    )


def webhdfs(minicluster: Minicluster) -> str:
    return f"{web(minicluster, minicluster.active_namenode())}/webhdfs/v1"


def test_sparks_jvms_start_from_the_archive_of_their_classes(minicluster: Minicluster) -> None:
    """With -Xshare:on a JVM does not start if the archive does not fit the classpath of a YARN container."""
    conf = minicluster.spark_conf()
    classpath = f"{conf['spark.driver.extraClassPath']}{os.pathsep}{minicluster.conf_dir}"
    options = [*conf["spark.driver.extraJavaOptions"].split(), "-Xshare:on"]
    command = ["java", *options, "-cp", classpath, "org.apache.spark.deploy.SparkSubmit", "--version"]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    assert started.returncode == 0, started.stdout + started.stderr


def test_spark_submit_starts_from_the_archive_too(minicluster: Minicluster) -> None:
    env = minicluster.client_env("streamer")
    env["SPARK_SUBMIT_OPTS"] += " -Xshare:on"
    started = subprocess.run(["spark-submit", "--version"], env=env, capture_output=True, text=True, check=False)
    assert started.returncode == 0, started.stdout + started.stderr


def test_no_jvm_of_the_minicluster_writes_into_tmp(minicluster: Minicluster) -> None:
    """Jetty unpacks web applications into the temporary folder, and the files of a killed JVM would stay there."""
    jvms = [process for process in processes_of(minicluster.root) if process.name() == "java"]
    assert len(jvms) >= 6
    assert [*(minicluster.root / "tmp").glob("jetty-*")]
    assert not [*Path("/tmp").glob(f"jetty-localhost-{urlsplit(minicluster.resourcemanagers[0]).port}-*")]
    assert not [jvm.pid for jvm in jvms if [*Path("/tmp").glob(f"hsperfdata_*/{jvm.pid}")]]
    # The ResourceManager's, whose default is in /tmp.
    assert [*(minicluster.root / "data/node-attributes").iterdir()]


def test_clients_of_the_minicluster_write_nothing_into_tmp(minicluster: Minicluster) -> None:
    environment = minicluster.client_env("streamer")
    assert environment["TMPDIR"] == f"{minicluster.root}/tmp"
    assert f"-Djava.io.tmpdir={minicluster.root}/tmp" in environment["SPARK_SUBMIT_OPTS"].split()


def test_every_socket_of_the_minicluster_is_on_loopback(minicluster: Minicluster) -> None:
    listening = [ip for process in processes_of(minicluster.root) for ip in listening_on(process)]
    assert len(listening) >= 15
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_every_daemon_says_that_it_serves(minicluster: Minicluster) -> None:
    status = minicluster.status()
    names = ["kdc", "journalnode", "nn1", "nn2", "datanode", "resourcemanager", "nodemanager", "kafka"]
    assert [daemon.name for daemon in status] == names
    assert {daemon.state for daemon in status} == {"running"}
    until(lambda: [daemon.answer for daemon in minicluster.status() if not daemon.serves] == [])


def test_a_principal_that_was_added_later_gets_in_and_with_a_rotated_key_too(minicluster: Minicluster) -> None:
    minicluster.add_principal("newcomer")
    before = shutil.copy(minicluster.keytab("newcomer"), minicluster.root / "old.keytab")
    minicluster.client_env("newcomer")
    minicluster.rotate("newcomer")
    minicluster.client_env("newcomer")
    Path(before).replace(minicluster.keytab("newcomer"))
    with pytest.raises(MiniclusterError, match=r"kinit as newcomer@KSTREAM\.TEST"):
        minicluster.client_env("newcomer")


def test_keytabs_and_tickets_are_closed_to_others(minicluster: Minicluster) -> None:
    ticket = Path(minicluster.client_env("watcher")["KRB5CCNAME"].removeprefix("FILE:"))
    assert {path.stat().st_mode & 0o777 for path in (ticket, minicluster.keytab("streamer"))} == {0o600}
    assert minicluster.keytab("streamer").parent.stat().st_mode & 0o777 == 0o700


def test_the_event_logs_tell_of_a_token(minicluster: Minicluster, streamer: requests.Session) -> None:
    active = minicluster.active_namenode()
    answer = streamer.get(f"{webhdfs(minicluster)}/?op=GETDELEGATIONTOKEN&renewer=yarn", timeout=60)
    number = DelegationToken.from_url_string(answer.json()["Token"]["urlString"]).sequence_number
    audited = f"cmd=getDelegationToken\tsrc=HDFS_DELEGATION_TOKEN token {number} for {getuser()} with renewer yarn"
    logs = minicluster.event_logs()
    assert list(logs) == ["nn1-service", "nn2-service", "nn1-audit", "nn2-audit", "resourcemanager"]
    assert audited in logs[f"{active}-audit"].read_text()
    assert f"sequenceNumber={number}, masterKeyId=" in logs[f"{active}-service"].read_text()
    assert logs["resourcemanager"].stat().st_size > 0


def test_a_failover_moves_the_active_namenode_and_writing_goes_on(minicluster: Minicluster) -> None:
    before = minicluster.active_namenode()
    assert put(minicluster, "before") == 201
    after = minicluster.failover()
    assert {before, after} == {"nn1", "nn2"}
    assert minicluster.active_namenode() == after
    assert put(minicluster, "after") == 201
    with session_as(minicluster, "streamer") as session:
        listed = session.get(f"{webhdfs(minicluster)}/kstream/failover?op=LISTSTATUS", timeout=60).json()
    assert {file["pathSuffix"] for file in listed["FileStatuses"]["FileStatus"]} == {"before", "after"}


def put(minicluster: Minicluster, name: str) -> int:
    """Write a file through the active NameNode and a DataNode."""
    with session_as(minicluster, "streamer") as session:
        url = f"{webhdfs(minicluster)}/kstream/failover/{name}?op=CREATE&overwrite=true"
        place = session.put(url, allow_redirects=False, timeout=60).headers["Location"]
        return session.put(place, data=b"a block", timeout=60).status_code


def test_a_killed_namenode_is_replaced_and_comes_back_as_the_standby(minicluster: Minicluster) -> None:
    killed = minicluster.active_namenode()
    minicluster.kill(killed)
    assert minicluster.failover() != killed
    minicluster.start(killed)
    other = next(name for name in ("nn1", "nn2") if name != killed)
    until(lambda: namenodes(minicluster) == {killed: "standby", other: "active"})


def test_two_standby_namenodes_are_named_with_the_command_that_ends_it(minicluster: Minicluster) -> None:
    """An active NameNode that was killed comes back as a standby, and clients of HDFS would wait without end."""

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*CLI, *words, "--root", str(minicluster.root)], capture_output=True, text=True)

    sentence = f"`kstream minicluster failover --root {minicluster.root}` makes one active."
    killed = minicluster.active_namenode()
    minicluster.kill(killed)
    assert sentence in said("start", killed).stderr
    status = said("status")
    assert sentence in status.stderr
    assert status.returncode == 1
    assert said("failover").returncode == 0
    assert sorted(namenodes(minicluster).values()) == ["active", "standby"]
    until(lambda: said("status").returncode == 0)


def test_two_namenodes_that_were_started_again_are_brought_to_an_active_one(minicluster: Minicluster) -> None:
    """Both may be in safe mode, from which Hadoop's own failover refuses."""
    for name in ("nn1", "nn2"):
        minicluster.kill(name)
    for name in ("nn1", "nn2"):
        minicluster.start(name)
    until(lambda: set(namenodes(minicluster).values()) == {"standby"})
    active = minicluster.failover()
    assert namenodes(minicluster)[active] == "active"
    until(lambda: minicluster.hdfs("dfs", "-touchz", f"/user/{getuser()}/after-both").returncode == 0)


def namenodes(minicluster: Minicluster) -> dict[str, str]:
    """Return each NameNode's answer; a busy one may answer too late."""
    return {daemon.name: daemon.answer for daemon in minicluster.status() if daemon.name.startswith("nn")}


@pytest.fixture
def sleeper(minicluster: Minicluster, streamer: requests.Session) -> Iterator[str]:
    """An application whose only container sleeps; killed afterwards."""
    name = start_sleeper(minicluster, streamer)
    yield name
    url = f"{web(minicluster, 'resourcemanager')}/ws/v1/cluster/apps/{name}/state"
    assert streamer.put(url, json={"state": "KILLED"}, timeout=60).status_code in (200, 202)
    until(lambda: not sleeping(minicluster))


def start_sleeper(minicluster: Minicluster, session: requests.Session) -> str:
    name = submit_sleeper(web(minicluster, "resourcemanager"), session)
    until(lambda: sleeping(minicluster))
    return name


def test_a_restarted_resourcemanager_knows_its_applications(
    minicluster: Minicluster, streamer: requests.Session, sleeper: str
) -> None:
    address, pids = minicluster.resourcemanagers, {process.pid for process in sleeping(minicluster)}
    minicluster.kill("resourcemanager")
    assert next(daemon.state for daemon in minicluster.status() if daemon.name == "resourcemanager") == "dead"
    with pytest.raises(requests.ConnectionError):
        streamer.get(address[0], timeout=60)
    minicluster.start("resourcemanager")
    app = streamer.get(f"{address[0]}/ws/v1/cluster/apps/{sleeper}", timeout=60).json()["app"]
    assert (app["user"], app["state"], minicluster.resourcemanagers) == (getuser(), "ACCEPTED", address)
    until(lambda: all(daemon.serves for daemon in minicluster.status()))
    assert {process.pid for process in sleeping(minicluster)} == pids


def test_a_paused_daemon_keeps_its_connections_and_answers_again_when_resumed(minicluster: Minicluster) -> None:
    url = web(minicluster, "resourcemanager")
    minicluster.pause("resourcemanager")
    with pytest.raises(requests.ReadTimeout):
        requests.get(url, timeout=0.5)
    assert next(daemon.state for daemon in minicluster.status() if daemon.name == "resourcemanager") == "paused"
    minicluster.resume("resourcemanager")
    assert requests.get(url, timeout=60).status_code == 401


def test_a_daemon_that_cannot_start_is_named_with_the_line_of_its_log(minicluster: Minicluster) -> None:
    port = int(web(minicluster, "nodemanager").rpartition(":")[2])
    minicluster.kill("nodemanager")
    told = rf"nodemanager ended at its start\. nodemanager\.log: .*BindException.*{port}"
    with closing(socket.create_server(("127.0.0.1", port))), pytest.raises(MiniclusterError, match=told):
        minicluster.start("nodemanager")
    minicluster.start("nodemanager")


def test_a_living_daemon_is_not_started_again_and_an_unknown_name_is_refused(
    minicluster: Minicluster,
) -> None:
    with pytest.raises(MiniclusterError, match="kdc is not dead"):
        minicluster.start("kdc")
    with pytest.raises(InvalidInput, match=r"no 'zookeeper'; it has kdc, journalnode"):
        minicluster.kill("zookeeper")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, minicluster: Minicluster) -> Iterator[Minicluster]:
    """A second minicluster beside the first: no feature, and lifetimes that are not Hadoop's defaults."""
    root = tmp_path_factory.mktemp("bare")
    lifetimes = ("--token-renew", "30m", "--token-max-lifetime", "2h")
    subprocess.run([*CLI, "up", "--root", str(root), "--bare", *lifetimes], check=True)
    beside = Minicluster.at(root)
    yield beside
    beside.down()


@contextmanager
def in_realm_of(minicluster: Minicluster) -> Iterator[None]:
    with mock.patch.dict(os.environ, KRB5_CONFIG=str(minicluster.krb5_conf)):
        yield


def test_delegation_tokens_live_as_long_as_the_plans_say(minicluster: Minicluster, bare: Minicluster) -> None:
    assert granted(minicluster) == (timedelta(days=1), timedelta(days=7))
    assert granted(bare) == (timedelta(minutes=30), timedelta(hours=2))


def granted(minicluster: Minicluster) -> tuple[timedelta, timedelta]:
    """Get and renew a token; return its renew interval and maximum lifetime."""
    with in_realm_of(minicluster), session_as(minicluster, "streamer") as session:
        question = f"{webhdfs(minicluster)}/?op=GETDELEGATIONTOKEN&renewer={getuser()}"
        text = session.get(question, timeout=60).json()["Token"]["urlString"]
        asked = datetime.now(UTC)
        renewal = session.put(f"{webhdfs(minicluster)}/?op=RENEWDELEGATIONTOKEN&token={text}", timeout=60)
    token = DelegationToken.from_url_string(text)
    good_for = datetime.fromtimestamp(renewal.json()["long"] / 1000, UTC) - asked
    return timedelta(minutes=round(good_for / timedelta(minutes=1))), token.max_date - token.issued


def test_two_stands_side_by_side_share_nothing(minicluster: Minicluster, bare: Minicluster) -> None:
    ports = [json.loads((each.root / "minicluster.json").read_text())["ports"].values() for each in (minicluster, bare)]
    assert not set(ports[0]) & set(ports[1])
    assert [daemon.name for daemon in bare.status()] == ["kdc", "nn1", "datanode", "resourcemanager", "nodemanager"]
    until(lambda: all(daemon.serves for each in (minicluster, bare) for daemon in each.status()))
    listing = [sys.executable, "-c", LISTING, bare.default_fs]
    own = subprocess.run(listing, env=bare.client_env("streamer"), capture_output=True, text=True)
    assert own.stdout.strip() == "/data,/kstream,/tmp,/user", own.stderr
    foreign = bare.client_env("streamer") | {"KRB5CCNAME": minicluster.client_env("streamer")["KRB5CCNAME"]}
    assert subprocess.run(listing, env=foreign, capture_output=True).returncode != 0


def test_a_started_minicluster_has_a_file_that_names_it_to_every_command(bare: Minicluster) -> None:
    assert yaml.safe_load((bare.root / "cluster.yaml").read_text()) == bare.connection("supervisor")


def test_its_hdfs_reads_what_comes_on_standard_input(bare: Minicluster) -> None:
    hdfs = [*CLI, "hdfs", "--root", str(bare.root), "--", "dfs"]
    subprocess.run([*hdfs, "-put", "-", "/tmp/greeting"], input=b"hello\n", check=True)
    assert subprocess.run([*hdfs, "-cat", "/tmp/greeting"], capture_output=True, check=True).stdout == b"hello\n"


def test_its_hdfs_takes_relative_paths_from_the_callers_folder(bare: Minicluster, tmp_path: Path) -> None:
    hdfs = [*CLI, "hdfs", "--root", str(bare.root), "--", "dfs"]
    (tmp_path / "greeting").write_text("hello")
    subprocess.run([*hdfs, "-put", "greeting", "/tmp/relative"], cwd=tmp_path, check=True)
    subprocess.run([*hdfs, "-get", "/tmp/relative", "received"], cwd=tmp_path, check=True)
    assert (tmp_path / "received").read_text() == "hello"


def test_what_only_ha_has_is_refused_without_it(bare: Minicluster) -> None:
    assert bare.active_namenode() == "nn1"
    with pytest.raises(InvalidInput, match="no 'nn2'"):
        bare.failover()
    with pytest.raises(InvalidInput, match="no 'kafka'"):
        _ = bare.bootstrap_servers


def test_a_minicluster_that_is_up_is_not_started_over(bare: Minicluster) -> None:
    with pytest.raises(MiniclusterError, match="and was left alone"):
        Minicluster.up(bare.plan)
    assert Minicluster.at(bare.root).plan == bare.plan


def test_the_command_line_kills_starts_and_tells_of_each_daemon(bare: Minicluster) -> None:
    """Without the KDC no web endpoint answers: the command says so for each, without a traceback."""

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*CLI, *words, "--root", str(bare.root)], capture_output=True, text=True)

    assert said("kill", "kdc").returncode == 0
    status = said("status")
    assert (status.returncode, status.stderr) == (1, "")
    assert {daemon.name: daemon.state for daemon in bare.status()}["kdc"] == "dead"
    assert "Cannot contact any KDC" in " ".join(daemon.answer for daemon in bare.status())
    assert said("start", "kdc").returncode == 0
    until(lambda: said("status").returncode == 0)
    listed = said("hdfs", "dfs", "-ls", "/", "--as", "watcher")
    assert "/kstream" in listed.stdout, listed.stderr
    assert said("hdfs", "dfs", "-ls", "/nowhere").returncode == 1
    # Hadoop's words, and not our help, whose option is -h elsewhere.
    assert "No such file" in said("hdfs", "dfs", "-chown", "hdfs", "/nowhere").stderr
    assert "no 'nn7'" in said("pause", "nn7").stderr


def test_down_ends_daemons_and_containers_from_any_process(bare: Minicluster) -> None:
    """The containers of a killed NodeManager have no parent left to end them."""
    with in_realm_of(bare), session_as(bare, "streamer") as session:
        start_sleeper(bare, session)
    bare.kill("nodemanager")
    assert sleeping(bare)
    down = subprocess.run([*CLI, "down", "--root", str(bare.root)], capture_output=True, text=True)
    assert down.returncode == 0, down.stderr
    assert processes_of(bare.root) == []
    bare.down()
    assert {daemon.state for daemon in bare.status()} == {"dead"}


def test_down_ends_what_a_killed_starter_left_behind(tmp_path: Path) -> None:
    starter = subprocess.Popen([*CLI, "up", "--root", str(tmp_path), "--feature", "ha"], stdout=subprocess.DEVNULL)
    until(lambda: len(processes_of(tmp_path)) >= 4)
    starter.kill()
    starter.wait()
    assert processes_of(tmp_path)
    Minicluster.at(tmp_path).down()
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    starter = subprocess.Popen([*CLI, "up", "--root", str(tmp_path)], stdout=subprocess.DEVNULL)
    try:
        until(lambda: len(processes_of(tmp_path)) >= 3)
        starter.send_signal(number)
        assert starter.wait(PATIENCE) != 0
        assert processes_of(tmp_path) == []
    finally:
        starter.kill()
        starter.wait()
        if processes_of(tmp_path):
            Minicluster.at(tmp_path).down()


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # This machine has them all.
    monkeypatch.setattr(tools, "SEARCH", str(tmp_path))
    with pytest.raises(
        MiniclusterError, match=r"krb5kdc.*apt-get install default-jre-headless krb5-admin-server krb5-kdc krb5-user"
    ):
        Minicluster.up(MiniclusterConfig(tmp_path / "minicluster"))
    assert not (tmp_path / "minicluster").exists()


def test_a_folder_without_a_minicluster_has_none(tmp_path: Path) -> None:
    with pytest.raises(MiniclusterError, match="There is no minicluster in"):
        Minicluster.at(tmp_path)


def test_a_plan_whose_tokens_could_not_be_renewed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="renew_interval"):
        MiniclusterConfig(tmp_path, renew_interval=timedelta(hours=2), max_lifetime=timedelta(hours=1))
