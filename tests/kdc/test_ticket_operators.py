"""Hook and operator of tickets against the real KDC, without an Airflow around them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.hooks.kerberos import KerberosHook
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.errors import CredentialError, Unavailable
from airflow_kstream.model.kerberos.ticket import cache_file_name
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator
from tests.kdc.logins import connection
from tests.live.realms import without_kdc

if TYPE_CHECKING:
    from airflow.sdk import Context

CONNECTION = "prod"
Connect = Callable[..., None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the declaration keeps caches; its only principal is the connection's own."""
    monkeypatch.setenv("AIRFLOW__KSTREAM__TICKETS_FOLDER", str(tmp_path))
    (tmp_path / f"{CONNECTION}.yaml").write_text(f"folder: {tmp_path}/caches\n")
    return tmp_path / "caches" / CONNECTION


@pytest.fixture(autouse=True)
def connect(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Let the connection be `streamer`'s, and have these fields."""

    def saying(password: str | None = None, **more: Any) -> None:
        extra = {name: value for name, value in (connection(kdc, "streamer") | more).items() if value}
        written = {"conn_type": "kstream", "password": password, "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(written))

    saying()
    return saying


class _Context(dict[str, Any]):
    """A task's context of a run whose XComs no task reads."""

    def __missing__(self, key: str) -> Any:
        return self

    def xcom_push(self, key: str, value: Any) -> None:
        self[key] = value


def renewal(context: _Context | None = None, **more: Any) -> list[dict[str, Any]]:
    operator = KerberosTicketRenewOperator(task_id="renew", cluster_conn_id=CONNECTION, **more)
    return operator.execute(cast("Context", _Context() if context is None else context))


def test_the_hook_acquires_into_the_cache_that_the_renewal_keeps(kdc: Kdc, folder: Path) -> None:
    hook = KerberosHook(CONNECTION)
    with pytest.raises(CredentialError):
        hook.ticket()
    acquired = hook.acquire()
    assert (acquired.client, hook.ticket()) == (kdc.principal("streamer"), acquired)
    assert acquired.expiry > datetime.now(UTC)
    caches = [path.name for path in folder.iterdir() if path.suffix == ".ccache"]
    assert caches == [cache_file_name(kdc.principal("streamer"))]
    assert "KRB5CCNAME" not in os.environ
    assert renewal()[0]["outcome"] == "kept"
    with hook.identity() as identity:
        assert tickets.acquire(identity, folder / "ours") <= acquired.expiry - datetime.now(UTC) + timedelta(seconds=1)
    renewed = hook.renew()
    assert (renewed.renew_until, renewed.start >= acquired.start) == (acquired.renew_until, True)


def test_a_child_gets_a_ticket_of_its_own_and_nothing_else(
    connect: Connect, kdc: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ticket comes from a keytab that the connection holds. Spark on YARN gets the ticket alone."""
    held = base64.b64encode(kdc.keytab("streamer").read_bytes()).decode()
    connect(password=held, keytab_path=None, krb5_conf=str(kdc.folders.krb5_conf))
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", "/somebody/else's")
    with KerberosHook(CONNECTION).environment() as env:
        cache = Path(env["KRB5CCNAME"].removeprefix("FILE:"))
        assert cache.stat().st_mode & 0o777 == 0o600
        listed = subprocess.run(["klist"], env=env, capture_output=True, text=True, check=True).stdout
        with KerberosHook(CONNECTION).environment(inherited=()) as other:
            assert set(other) == {"KRB5CCNAME", "KRB5_CONFIG"}
            assert other["KRB5CCNAME"] != env["KRB5CCNAME"]
    assert f"Default principal: {kdc.principal('streamer')}" in listed
    assert "HADOOP_TOKEN_FILE_LOCATION" not in env
    assert not cache.exists()


def test_a_connections_own_ticket_is_acquired_then_kept_then_forced() -> None:
    outcomes = [renewal()[0]["outcome"], renewal()[0]["outcome"], renewal(force="True")[0]["outcome"]]
    assert outcomes == ["acquired", "kept", "acquired"]


def test_all_are_tried_before_it_fails_and_names_the_broken_ones(kdc: Kdc, tmp_path: Path) -> None:
    broken = {"principal": kdc.principal("watcher"), "keytab": str(tmp_path / "nowhere")}
    sound = {"principal": kdc.principal("gateway"), "keytab": str(kdc.keytab("gateway"))}
    declaration, context = {"principals": [broken, sound], "folder": str(tmp_path / "others")}, _Context()
    with pytest.raises(AirflowFailException, match=r"and can't wait: watcher@\S+ \(missing, 1 failure\)"):
        renewal(context, declaration=declaration)
    reports = context["return_value"]
    assert [(report["principal"], report["outcome"]) for report in reports] == [
        (kdc.principal("streamer"), "acquired"),
        (kdc.principal("watcher"), "failed"),
        (kdc.principal("gateway"), "acquired"),
    ]
    assert all(report["cache"].startswith(str(tmp_path / "others")) for report in reports)


def test_while_the_kdc_is_away_it_warns_alerts_only_without_a_ticket_and_recovers(
    kdc: Kdc, folder: Path, tmp_path: Path
) -> None:
    renewal()
    with without_kdc(kdc, tmp_path):
        [warned] = renewal(force=True)
        shutil.rmtree(folder)
        with pytest.raises(Unavailable, match=r"streamer@\S+ \(missing, 1 failure\)"):
            renewal()
    [back] = renewal()
    assert (warned["outcome"], warned["state"], warned["failures"]) == ("failed", "fresh", 1)
    assert (back["outcome"], back["failures"]) == ("acquired", 0)


RUN_THE_EXAMPLE = """
from airflow.utils.db import initdb
from airflow_kstream.example_dags.maintenance import tickets

initdb()
run = tickets.test()
print(run.state, *sorted(f"{task.task_id}: {task.state}" for task in run.get_task_instances()))
"""


def test_the_example_of_maintenance_runs_as_it_stands(kdc: Kdc, tmp_path: Path, folder: Path) -> None:
    """In an Airflow of its own, with a connection and a declaration and nothing else."""
    (tmp_path / "example.yaml").write_text(f"folder: {folder.parent}\n")
    extra = {"conn_type": "kstream", "extra": connection(kdc, "streamer")}
    airflow = {"AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW_CONN_EXAMPLE": json.dumps(extra)}
    command = [sys.executable, "-c", RUN_THE_EXAMPLE]
    done = subprocess.run(command, env=os.environ | airflow, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["success check: success renew: success"], done.stderr
    assert (folder.parent / "example" / cache_file_name(kdc.principal("streamer"))).is_file()
