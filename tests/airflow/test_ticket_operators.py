"""Hook, operator and sensor of tickets against the real KDC, without an Airflow around them."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from airflow.sdk import PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.hooks.kerberos import KerberosHook
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import CredentialError, InvalidInput, Unavailable
from airflow_kstream.model.ticket import cache_file_name
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor
from airflow_kstream.triggers import awaiting
from airflow_kstream.triggers.tickets import TicketExpiryTrigger
from tests.live.streams import fields

if TYPE_CHECKING:
    from airflow.sdk import Context

CONNECTION = "minicluster"
# Longer than any ticket's lifetime in the minicluster.
LONG, SHORT = "1d", "1s"
Connect = Callable[..., None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the declaration keeps caches; its only principal is the connection's own."""
    monkeypatch.setenv("AIRFLOW__KSTREAM__TICKETS_FOLDER", str(tmp_path))
    (tmp_path / f"{CONNECTION}.yaml").write_text(f"folder: {tmp_path}/caches\n")
    return tmp_path / "caches" / CONNECTION


@pytest.fixture(autouse=True)
def connect(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Set these fields of the connection to the minicluster."""

    def saying(password: str | None = None, **more: Any) -> None:
        extra = {name: value for name, value in dataclasses.asdict(fields(minicluster)).items() if value} | more
        connection = {"conn_type": "kstream", "password": password, "extra": {k: v for k, v in extra.items() if v}}
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(connection))

    saying()
    return saying


def renewal(**more: Any) -> list[dict[str, Any]]:
    operator = KerberosTicketRenewOperator(task_id="renew", cluster_conn_id=CONNECTION, **more)
    return operator.execute(cast("Context", _Context()))


class _Context(dict[str, Any]):
    """A task's context of a run whose XComs no task reads."""

    def __missing__(self, key: str) -> Any:
        return self

    def xcom_push(self, key: str, value: Any) -> None:
        self[key] = value


def sensor(**more: Any) -> KerberosTicketExpirySensor:
    return KerberosTicketExpirySensor(task_id="wait", cluster_conn_id=CONNECTION, **more)


def poked(**more: Any) -> PokeReturnValue:
    return sensor(**more).poke({})


class TestTheHook:
    def test_it_acquires_into_the_cache_that_the_renewal_keeps(self, minicluster: Minicluster, folder: Path) -> None:
        hook = KerberosHook(CONNECTION)

        acquired = hook.acquire()

        assert acquired.client == minicluster.principal("streamer")
        assert acquired.expiry > datetime.now(UTC)
        assert hook.ticket() == acquired
        assert [path.name for path in folder.iterdir() if path.suffix == ".ccache"] == [
            cache_file_name(minicluster.principal("streamer"))
        ]
        assert "KRB5CCNAME" not in os.environ

    def test_it_renews_without_the_keytab(self) -> None:
        hook = KerberosHook(CONNECTION)
        acquired = hook.acquire()

        renewed = hook.renew()

        assert renewed.renew_until == acquired.renew_until
        assert renewed.start >= acquired.start

    def test_without_a_ticket_it_says_so(self) -> None:
        with pytest.raises(CredentialError):
            KerberosHook(CONNECTION).ticket()

    def test_a_stranger_needs_a_keytab(self, minicluster: Minicluster) -> None:
        principal = minicluster.principal("gateway")
        with pytest.raises(InvalidInput, match="give its keytab or cache"):
            KerberosHook(CONNECTION, principal=principal).acquire()

        assert KerberosHook(CONNECTION, principal, str(minicluster.keytab("gateway"))).acquire().client == principal

    def test_our_clients_speak_as_its_identity(self, minicluster: Minicluster) -> None:
        hook = KerberosHook(CONNECTION, minicluster.principal("gateway"), str(minicluster.keytab("gateway")))
        with hook.identity() as identity:
            hdfs = Hdfs(minicluster.namenodes, identity, Tls())
            assert hdfs.status("/").is_folder
            hdfs.close()

    def test_a_child_gets_a_ticket_of_its_own_and_nothing_else(
        self, connect: Connect, minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The ticket comes from a keytab that the connection holds."""
        connect(password=base64.b64encode(minicluster.keytab("streamer").read_bytes()).decode(), keytab_path=None)
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", "/somebody/else's")
        with KerberosHook(CONNECTION).environment() as env:
            cache = Path(env["KRB5CCNAME"].removeprefix("FILE:"))
            assert cache.stat().st_mode & 0o777 == 0o600
            listed = subprocess.run(["klist"], env=env, capture_output=True, text=True, check=True).stdout
            with KerberosHook(CONNECTION).environment() as other:
                assert other["KRB5CCNAME"] != env["KRB5CCNAME"]
        assert f"Default principal: {minicluster.principal('streamer')}" in listed
        assert "HADOOP_TOKEN_FILE_LOCATION" not in env
        assert not cache.exists()

    def test_spark_on_yarn_gets_the_ticket_alone(self) -> None:
        with KerberosHook(CONNECTION).environment(inherited=()) as env:
            assert set(env) == {"KRB5CCNAME", "KRB5_CONFIG"}


class TestTheOperator:
    def test_a_connections_own_ticket_is_acquired_then_kept_then_forced(self) -> None:
        outcomes = [renewal()[0]["outcome"], renewal()[0]["outcome"], renewal(force="True")[0]["outcome"]]

        assert outcomes == ["acquired", "kept", "acquired"]

    def test_it_takes_an_order_of_its_own(self, minicluster: Minicluster, tmp_path: Path) -> None:
        keytab = {"principal": minicluster.principal("gateway"), "keytab": str(minicluster.keytab("gateway"))}
        reports = renewal(declaration={"principals": [keytab], "folder": str(tmp_path / "others")})

        assert [(report["principal"], report["outcome"]) for report in reports] == [
            (minicluster.principal("streamer"), "acquired"),
            (minicluster.principal("gateway"), "acquired"),
        ]
        assert all(report["cache"].startswith(str(tmp_path / "others")) for report in reports)

    def test_all_are_tried_before_it_fails_and_names_the_broken_ones(
        self, minicluster: Minicluster, tmp_path: Path
    ) -> None:
        broken = {"principal": minicluster.principal("gateway"), "keytab": str(tmp_path / "nowhere")}
        declaration = {"principals": [broken], "folder": str(tmp_path / "caches")}
        with pytest.raises(AirflowFailException, match=r"and can't wait: gateway@\S+ \(missing, 1 failure\)"):
            renewal(declaration=declaration)

        assert KerberosHook(CONNECTION).ticket().client == minicluster.principal("streamer")

    def test_while_the_kdc_is_away_it_warns_alerts_only_without_a_ticket_and_recovers(
        self, minicluster: Minicluster, folder: Path
    ) -> None:
        renewal()
        minicluster.kill("kdc")
        try:
            [warned] = renewal(force=True)
            shutil.rmtree(folder)
            with pytest.raises(Unavailable, match=r"streamer@\S+ \(missing, 1 failure\)"):
                renewal()
        finally:
            minicluster.start("kdc")
        [back] = renewal()

        assert (warned["outcome"], warned["state"], warned["failures"]) == ("failed", "fresh", 1)
        assert (back["outcome"], back["failures"]) == ("acquired", 0)

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"principal": "etl"}, "principal is 'etl'; allowed is primary"),
            ({"principal": "etl@R"}, "give its keytab or cache"),
            ({"cache": "here"}, "absolute path"),
            ({"renew_at": "7"}, "renew_at"),
            ({"alert_before": "soon"}, "alert_before"),
            ({"force": "perhaps"}, "allowed are true and false"),
            ({"declaration": {"principal": "etl@R"}}, "the fields are"),
        ],
    )
    def test_what_makes_no_sense_fails_for_good(self, fields: dict[str, Any], why: str) -> None:
        with pytest.raises(AirflowFailException, match=why):
            renewal(**fields)


class TestTheSensor:
    def test_a_missing_ticket_is_what_is_waited_for(self, minicluster: Minicluster) -> None:
        result = poked()

        assert result.is_done
        assert result.xcom_value is not None
        [missing] = result.xcom_value["expiring"]
        assert (missing["principal"], missing["state"]) == (minicluster.principal("streamer"), "missing")

    def test_a_ticket_counts_once_it_has_little_left(self) -> None:
        KerberosHook(CONNECTION).acquire()

        assert poked(within=LONG)
        assert not poked(within=SHORT)

    def test_a_damaged_cache_counts_with_its_reason(self, tmp_path: Path) -> None:
        (tmp_path / "odd").write_bytes(b"\x05\x04no cache")
        result = poked(cache=str(tmp_path / "odd"))

        assert result.xcom_value is not None
        assert str(tmp_path / "odd") in result.xcom_value["expiring"][0]["error"]

    async def test_the_triggerer_gives_the_same_answer(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        monkeypatch.setattr(awaiting, "SETTLING_SECONDS", 0.0)
        KerberosHook(CONNECTION).acquire()
        with pytest.raises(TaskDeferred) as raised:
            sensor(deferrable=True, within=SHORT, poke_interval=0.1).execute({})
        name, kwargs = raised.value.trigger.serialize()
        assert name == "airflow_kstream.triggers.tickets.TicketExpiryTrigger"
        await asyncio.to_thread(shutil.rmtree, folder)

        event = await anext(TicketExpiryTrigger(**json.loads(json.dumps(kwargs))).run())

        here = poked(within=SHORT).xcom_value
        assert here is not None
        assert event.payload["report"]["expiring"] == here["expiring"]
        assert sensor().resume({}, event.payload) == event.payload["report"]

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"principal": "etl"}, "principal is 'etl'; allowed is primary"),
            ({"principal": "etl@R"}, "give its keytab or cache"),
            ({"within": "soon"}, "is not a duration"),
            ({"cache": "KCM:0"}, "absolute path"),
        ],
    )
    def test_what_makes_no_sense_fails_for_good(self, fields: dict[str, Any], why: str) -> None:
        with pytest.raises(AirflowFailException, match=why):
            poked(**fields)
