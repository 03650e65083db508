"""A real Airflow on loopback, and how it outlives the crash of its parts."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from airflow_kstream.demo.airflow_api import AirflowApi, Connection, Login
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings, as_cfg, generated_secrets
from airflow_kstream.demo.supervisor import Child, Happening, ProcessSupervisor, RespawnLimits, SupervisorEvent
from airflow_kstream.minicluster.processes import Launch
from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    InvalidInput,
    MiniclusterError,
    NotFound,
    Unavailable,
)
from tests.live.airflow_api import LiveApi, TaskRef

Answer = TypeVar("Answer")
DAGS = ("deferred", "working", "failing")

# A minicluster-in for a stream's task: it pushes the addresses of "its application" and waits, deferred, for a file.
DAG_FILE = """
import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.triggers.file import FileTrigger
from airflow.sdk import BaseOperator, dag, task

from airflow_kstream.links import YarnApplicationLink, YarnLogsLink


class WaitForFile(BaseOperator):
    template_fields = ("path",)
    operator_extra_links = (YarnApplicationLink(), YarnLogsLink())

    def __init__(self, *, path, **kwargs):
        super().__init__(**kwargs)
        self.path = path

    def execute(self, context):
        context["ti"].xcom_push(key="yarn_application", value="https://rm.example.com/cluster/app/application_1_0001")
        self.defer(trigger=FileTrigger(self.path, poke_interval=0.5), method_name="seen")

    def seen(self, context, event):
        context["ti"].xcom_push(key="yarn_application", value="https://rm.example.com/cluster/app/application_1_0002")
        return "seen"


@dag(schedule=None, params={"path": "/nowhere"})
def deferred():
    WaitForFile(task_id="wait", path="{{ params.path }}", retries=5, retry_delay=timedelta(seconds=1))


@dag(schedule=None, params={"path": "/nowhere"})
def working():
    @task(retries=2, retry_delay=timedelta(seconds=1))
    def work(params=None):
        path = Path(params["path"])
        if path.exists():
            return "done at last"
        path.write_text(str(os.getpid()))
        time.sleep(600)

    work()


@dag(schedule=None)
def failing():
    @task
    def fail():
        try:
            raise OSError("the cable is cut")
        except OSError as error:
            raise RuntimeError("no cluster") from error

    fail()


deferred()
working()
failing()
"""


def eventually(ask: Callable[[], Answer], seconds: float = 400) -> Answer:
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)
    return answer


@pytest.fixture(scope="module")
def dags_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dags")
    (folder / "waiting.py").write_text(DAG_FILE)
    (folder / "broken.py").write_text("from airflow.sdk import dag\nraise RuntimeError('a broken file')\n")
    return folder


@pytest.fixture(scope="module")
def home(dags_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AirflowHome:
    home = AirflowHome(tmp_path_factory.mktemp("home") / "airflow", dags_folder, crash=CrashSettings.brisk())
    home.prepare()
    return home


@pytest.fixture(scope="module")
def events() -> list[SupervisorEvent]:
    return []


@pytest.fixture(scope="module")
def running_airflow(home: AirflowHome, events: list[SupervisorEvent]) -> Iterator[ProcessSupervisor]:
    with ProcessSupervisor(events.append) as supervisor:
        for component in home.components():
            supervisor.start(component)
        home.wait_until_healthy(supervisor, timeout=400)
        yield supervisor


@pytest.fixture(scope="module")
def api(home: AirflowHome, running_airflow: ProcessSupervisor) -> Iterator[LiveApi]:
    api = LiveApi.of(home)
    eventually(lambda: set(DAGS) <= set(api.dag_ids()))
    for dag_id in DAGS:
        api.unpause_dag(dag_id)
    yield api
    api.close()


def start_deferred(api: LiveApi, path: Path) -> TaskRef:
    ref = TaskRef("deferred", api.trigger_dag_run("deferred", {"path": str(path)}), "wait")
    eventually(lambda: api.task_instance(ref).state == "deferred")
    return ref


# --- files that are written before anything runs


def test_secrets_lie_in_private_files_only(home: AirflowHome) -> None:
    assert home.root.stat().st_mode & 0o777 == 0o700
    for name in ("airflow.cfg", "keys.json", "passwords.json"):
        assert (home.root / name).stat().st_mode & 0o777 == 0o600, name
    assert home.login.password not in repr(home) + repr(home.login)
    assert home.login.password not in str(home.environment())


def test_preparing_again_keeps_keys_password_and_database(home: AirflowHome) -> None:
    before = home.login, (home.root / "keys.json").read_text()

    AirflowHome(home.root, home.dags_folder, crash=home.crash, ports=home.ports).prepare()

    assert before == (home.login, (home.root / "keys.json").read_text())


def test_the_callers_airflow_and_tickets_do_not_leak_in(home: AirflowHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW_HOME", "/somewhere/else")
    monkeypatch.setenv("KRB5CCNAME", "/tmp/krb5cc_0")

    environment = home.environment()

    assert environment["AIRFLOW_HOME"] == str(home.root)
    assert "AIRFLOW__CORE__EXECUTOR" not in environment
    assert "KRB5CCNAME" not in environment


def test_temporary_files_lie_in_its_own_folder(home: AirflowHome) -> None:
    """A process that is killed leaves them there, and they go with the folder."""
    ask = (sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())")

    made = subprocess.run(ask, env=home.environment(), capture_output=True, text=True, check=True).stdout.strip()

    assert Path(made).is_relative_to(home.root)


def test_percent_signs_survive_airflows_interpolation() -> None:
    assert as_cfg({"core": {"password": "50%"}}) == "[core]\npassword = 50%%\n"


def test_every_installation_has_keys_of_its_own() -> None:
    assert generated_secrets() != generated_secrets()


def test_brisk_notices_every_death_sooner_than_airflows_defaults() -> None:
    slow, brisk = CrashSettings().settings(), CrashSettings.brisk().settings()

    for section, options in slow.items():
        assert all(float(brisk[section][option]) < float(value) for option, value in options.items())


def test_a_database_that_cannot_be_made_is_an_error_with_the_reason(dags_folder: Path, tmp_path: Path) -> None:
    home = AirflowHome(tmp_path, dags_folder, overrides={"database": {"sql_alchemy_conn": "nonsense:///"}})

    with pytest.raises(MiniclusterError, match=r"airflow db migrate: (?s:.*)nonsense"):
        home.prepare()


def test_a_component_that_cannot_start_is_named_with_the_end_of_its_log(home: AirflowHome, tmp_path: Path) -> None:
    broken = Child("scheduler", Launch(("bash", "-c", "echo the disk is full; exit 1"), {}, tmp_path, tmp_path / "log"))

    with ProcessSupervisor(limits=RespawnLimits(backoff=0, per_minute=1)) as supervisor:
        supervisor.start(broken)
        with pytest.raises(MiniclusterError, match=r"start Airflow's scheduler: died 2 times (?s:.*)the disk is full"):
            home.wait_until_healthy(supervisor, timeout=400)


# --- components that run


def test_every_component_is_healthy(api: LiveApi) -> None:
    healthy = dict.fromkeys(["metadatabase", "scheduler", "triggerer", "dag_processor"], "healthy")
    # Health is the age of a heartbeat: a component that was delayed for a moment is healthy a moment later.
    eventually(lambda: api.health() == healthy)


def test_everything_listens_on_loopback_only(
    api: LiveApi, home: AirflowHome, running_airflow: ProcessSupervisor
) -> None:
    listening = [
        address
        for component in home.components()
        for process in running_airflow.processes(component.name)
        for address in _listening_on(process)
    ]

    assert {(address.ip, address.port) for address in listening} == {
        ("127.0.0.1", home.ports.people),
        ("127.0.0.1", home.ports.tasks),
    }


def test_no_secret_is_in_any_command_line(api: LiveApi, home: AirflowHome, running_airflow: ProcessSupervisor) -> None:
    secrets = [home.login.password, *(line.split(" = ")[1] for line in _key_lines(home))]
    commands = [
        command
        for component in home.components()
        for process in running_airflow.processes(component.name)
        for command in _command_line(process)
    ]

    assert len(secrets) == 4
    assert len(commands) >= len(home.components())
    assert not [command for command in commands if any(secret in command for secret in secrets)]


def _listening_on(process: psutil.Process) -> list[Any]:
    """Return the addresses that the process listens on; none if it has ended."""
    try:
        return [one.laddr for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
    except psutil.NoSuchProcess:
        return []


def _command_line(process: psutil.Process) -> list[str]:
    """Return the process's command line; none if it has just ended: a DAG processor's children live for seconds."""
    try:
        return [" ".join(process.cmdline())]
    except psutil.NoSuchProcess:  # A zombie counts as well.
        return []


def _key_lines(home: AirflowHome) -> list[str]:
    keys = ("fernet_key", "secret_key", "jwt_secret")
    return [line for line in (home.root / "airflow.cfg").read_text().splitlines() if line.startswith(keys)]


def test_a_connection_is_there_for_a_person_to_see_and_its_keytab_is_masked(api: LiveApi) -> None:
    connection = Connection("cluster", "kstream", password="a2V5dGFi" * 8, extra={"principal": "watcher@EXAMPLE.COM"})

    api.put_connection(connection)
    api.put_connection(connection)

    shown = str(api.call("GET", "/connections/cluster"))
    assert "watcher@EXAMPLE.COM" in shown
    assert "a2V5dGFi" not in shown


def test_a_broken_dag_file_is_reported(api: LiveApi) -> None:
    [failure] = eventually(api.import_errors)

    assert failure.filename.endswith("broken.py")
    assert "a broken file" in failure.stack_trace


def test_errors_are_ours(api: LiveApi, home: AirflowHome) -> None:
    run_id = api.trigger_dag_run("deferred", run_id="twice")

    with pytest.raises(Conflict):
        api.trigger_dag_run("deferred", run_id="twice")
    with pytest.raises(NotFound, match="GET /api/v2/dags/nowhere/dagRuns/x"):
        api.dag_run_state("nowhere", "x")
    with pytest.raises(InvalidInput, match="is not one of"):
        api.mark(TaskRef("deferred", run_id, "wait"), "deferred")
    with pytest.raises(CredentialError, match=r"as admin.*Invalid credentials"):
        AirflowApi(home.url, Login("admin", "wrong")).dag_ids()
    with pytest.raises(Unavailable, match="Retrying may help"):
        AirflowApi("http://127.0.0.1:1", home.login).health()


def test_the_links_of_a_deferred_task_lead_to_its_application(api: LiveApi, tmp_path: Path) -> None:
    ref = start_deferred(api, tmp_path / "file")

    address = "https://rm.example.com/cluster/app/application_1_0001"
    assert api.xcom_entry(ref, "yarn_application") == address
    assert api.extra_links(ref) == {"YARN application": address, "YARN logs": None}
    eventually(lambda: "Pausing task as DEFERRED" in api.task_log(ref, 1))


def test_clearing_starts_a_deferred_task_again_and_marking_ends_it(api: LiveApi, tmp_path: Path) -> None:
    ref = start_deferred(api, tmp_path / "file")

    api.clear(ref)
    eventually(lambda: (api.task_instance(ref).state, api.task_instance(ref).try_number) == ("deferred", 2))
    api.mark(ref, "success")

    assert api.task_instance(ref).state == "success"
    assert eventually(lambda: api.dag_run_state(ref.dag_id, ref.run_id) == "success")


def test_the_log_of_a_failed_task_says_why(api: LiveApi) -> None:
    ref = TaskRef("failing", api.trigger_dag_run("failing"), "fail")

    eventually(lambda: api.dag_run_state(ref.dag_id, ref.run_id) == "failed")

    why = {"RuntimeError: no cluster", "OSError: the cable is cut"}
    eventually(lambda: why <= set(api.task_log(ref, 1).splitlines()))


# --- crashes


def test_a_deferred_task_outlives_the_crash_of_triggerer_and_scheduler(
    api: LiveApi, running_airflow: ProcessSupervisor, events: list[SupervisorEvent], tmp_path: Path
) -> None:
    ref = start_deferred(api, tmp_path / "file")
    before = len(respawned(events))

    assert running_airflow.kill("triggerer")
    assert running_airflow.kill("scheduler")
    (tmp_path / "file").write_text("now")

    eventually(lambda: api.dag_run_state(ref.dag_id, ref.run_id) == "success")
    assert api.task_instance(ref).try_number == 1
    assert str(api.extra_links(ref)["YARN application"]).endswith("application_1_0002")
    assert sorted(respawned(events)[before:]) == ["scheduler", "triggerer"]


def respawned(events: list[SupervisorEvent]) -> list[str]:
    return [event.child for event in events if event.happening is Happening.RESPAWNED]


def test_a_running_task_that_dies_with_its_scheduler_is_run_again(
    api: LiveApi, running_airflow: ProcessSupervisor, tmp_path: Path
) -> None:
    ref = TaskRef("working", api.trigger_dag_run("working", {"path": str(tmp_path / "pid")}), "work")
    worker = int(eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))

    killed = running_airflow.kill("scheduler")

    assert worker in killed
    eventually(lambda: api.dag_run_state(ref.dag_id, ref.run_id) == "success")
    assert api.task_instance(ref).try_number == 2
    assert api.xcom_entry(ref, "return_value") == "done at last"


def test_the_client_logs_in_again_after_a_crash_of_the_server(
    api: LiveApi, home: AirflowHome, running_airflow: ProcessSupervisor
) -> None:
    running_airflow.kill("api-server")

    home.wait_until_healthy(running_airflow)

    assert "deferred" in api.dag_ids()
