"""Sensors that wait for the end of tokens give the same answer in a worker and in the triggerer, on a real cluster."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import KeytabCredentials, TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder, new_nonce
from airflow_kstream.triggers import awaiting
from tests.live.streams import fields, rate_stream
from tests.live.token_makers import access_as, fetch, identity, issue, leaked, sleeper
from tests.live.token_waiting import CONNECTION, deferred, fired, poked, sensor, watching

# Every user may list it.
FOLDER = "/token-expiry"
HOUR = TokenLifetimes(timedelta(minutes=10), timedelta(hours=1))
# Longer than any token's lifetime in the minicluster.
LONG, SHORT = "8d", "1d"
Connect = Callable[..., None]
Act = Callable[[], object]


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    # No worker has to end first, as one that defers its task does.
    monkeypatch.setattr(awaiting, "SETTLING_SECONDS", 0.0)


@pytest.fixture
def connect(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Set these fields of the connection to the minicluster."""

    def as_principal(who: str = "streamer", **more: Any) -> None:
        extra = {name: value for name, value in dataclasses.asdict(fields(minicluster, who, **more)).items() if value}
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps({"conn_type": "kstream", "extra": extra}))

    as_principal()
    return as_principal


@pytest.fixture
def token_file(minicluster: Minicluster, tmp_path: Path) -> Path:
    return issue(minicluster, tmp_path / "token")


@pytest.fixture(scope="module")
def folder(minicluster: Minicluster) -> Iterator[ClusterSession]:
    with access_as(minicluster, "hdfs") as session:
        session.hdfs.make_folder(FOLDER, "755")
        yield session
        session.hdfs.delete(FOLDER, recursive=True)


@pytest.mark.usefixtures("connect")
class TestOfAFile:
    def test_it_has_come_when_a_token_has_little_left(self, token_file: Path) -> None:
        result = poked(file=str(token_file), within=LONG)

        assert result.is_done
        assert result.xcom_value is not None
        [token] = result.xcom_value["expiring"]
        assert 6.9 * 86400 < token["remaining_seconds"] <= 7 * 86400
        assert token["token"].startswith("WEBHDFS delegation")
        assert leaked(token_file, json.dumps(result.xcom_value)) == []

    def test_it_is_waited_for_while_all_have_more(self, token_file: Path) -> None:
        assert not poked(file=str(token_file), within=SHORT)

    @pytest.mark.usefixtures("folder")
    def test_on_hdfs_it_is_read_as_well(self, minicluster: Minicluster, tmp_path: Path) -> None:
        binary = fetch(minicluster, tmp_path / "token")
        path = f"{FOLDER}/job.token"
        assert minicluster.hdfs("dfs", "-put", str(binary), path).returncode == 0

        result = poked(file=f"{minicluster.default_fs}{path}", within=LONG)

        assert result.is_done
        assert result.xcom_value is not None
        assert result.xcom_value["expiring"][0]["token"].startswith("HDFS_DELEGATION_TOKEN")
        assert not poked(file=f"{minicluster.default_fs}{path}", within=SHORT)

    def test_one_that_is_not_there_yet_is_waited_for(self, minicluster: Minicluster, tmp_path: Path) -> None:
        assert not poked(file=str(tmp_path / "later"))
        assert not poked(file=f"{minicluster.default_fs}/nowhere")

    def test_one_without_any_date_fails_at_once(self, tmp_path: Path) -> None:
        write_private(tmp_path / "odd", b"HDTS\x00\x00\x00")
        with pytest.raises(AirflowFailException, match="has a max date; it holds"):
            poked(file=str(tmp_path / "odd"))


@pytest.mark.usefixtures("connect")
class TestInTheTriggerer:
    async def test_the_answer_is_the_same(self, minicluster: Minicluster, tmp_path: Path) -> None:
        path = tmp_path / "token"
        trigger = deferred(file=str(path), within=LONG)
        async with watching(trigger) as event:
            await asyncio.sleep(1)
            assert not event.done()
            issue(minicluster, path)
            report = (await asyncio.wait_for(event, 60)).payload["report"]

        here = poked(file=str(path), within=LONG).xcom_value
        assert here is not None
        assert [one["token"] for one in report["expiring"]] == [one["token"] for one in here["expiring"]]
        assert sensor(file=str(path)).resume({}, {"report": report}) == report

    async def test_what_no_waiting_can_change_fails_the_task(self, tmp_path: Path) -> None:
        path = tmp_path / "odd"
        trigger = deferred(file=str(path))
        write_private(path, b"no token")

        event = await fired(trigger)

        with pytest.raises(AirflowFailException, match="can't be read as Hadoop credentials"):
            sensor(file=str(path)).resume({}, event)


@pytest.fixture
def generation(minicluster: Minicluster, tmp_path: Path) -> Iterator[str]:
    """A stream whose one generation runs on tokens of an hour."""
    spec = rate_stream("token-sensor", TicketCredentials())
    with access_as(minicluster, "streamer") as session:
        stream = StreamId(spec.name, session.cluster.state_dir)
        StreamFolder(session, stream, acting=True).make_claim(ClaimDraft(1, new_nonce(), spec, HOUR, {}, "test"))
        with sleeper(minicluster, fetch(minicluster, tmp_path / "token"), stream.tags(1)) as app:
            yield app
        session.hdfs.delete(stream.folder, recursive=True)


@pytest.mark.usefixtures("connect")
class TestOfAStream:
    def test_the_tokens_of_its_running_generation_count(self, generation: str) -> None:
        result = poked(stream="token-sensor", within="2h")

        assert result.is_done
        assert result.xcom_value is not None
        [end] = result.xcom_value["expiring"]
        assert end["token"] == "launch tokens of generation 1 of token-sensor"
        assert 3500 < end["remaining_seconds"] <= 3600
        assert not poked(stream="token-sensor", within="10m")
        by_application = poked(application=generation, within="2h").xcom_value
        assert by_application is not None
        assert by_application["expiring"][0]["max_date"] == end["max_date"]

    def test_the_clusters_lifetimes_tell_about_anybodys_application(
        self, minicluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The sensor learns the lifetimes once, from a token that the cluster issues; a second poll requests none."""
        asked, get = [], Hdfs.new_token

        def counted(hdfs: Hdfs, renewer: str) -> str:
            asked.append(renewer)
            return get(hdfs, renewer)

        # What is counted are requests to the real NameNode.
        monkeypatch.setattr(Hdfs, "new_token", counted)
        with sleeper(minicluster, fetch(minicluster, tmp_path / "token")) as app:
            waiting = sensor(application=app, within=LONG)
            reports = [waiting.poke({}).xcom_value for _ in range(3)]
        assert [report["expiring"][0]["token"] for report in reports if report] == [f"launch tokens of {app}"] * 3
        assert len(asked) == 1
        with pytest.raises(AirflowFailException, match="its tokens are no longer in use"):
            poked(application=app)

    def test_one_that_was_never_started_is_waited_for(self) -> None:
        assert not poked(stream="never-started")

    def test_one_that_makes_its_own_tokens_is_refused(self, minicluster: Minicluster) -> None:
        spec = rate_stream(
            "token-own", KeytabCredentials(minicluster.principal("streamer"), str(minicluster.keytab("streamer")))
        )
        with access_as(minicluster, "streamer") as session:
            stream = StreamId(spec.name, session.cluster.state_dir)
            StreamFolder(session, stream, acting=True).make_claim(ClaimDraft(1, new_nonce(), spec, HOUR, {}, "test"))
            with pytest.raises(AirflowFailException, match="gets new tokens with its keytab"):
                poked(stream="token-own")
            session.hdfs.delete(stream.folder, recursive=True)


LIFE = timedelta(seconds=12)
LATER = f"{FOLDER}/later"
LATER_ON_HDFS = f"{Minicluster.default_fs}{LATER}"


@pytest.fixture(scope="module")
def patient(minicluster: Minicluster) -> Identity:
    """A principal whose tickets live for seconds."""
    minicluster.add_principal("patient")
    minicluster.limit_life("patient", LIFE)
    return identity(minicluster, "patient")


@pytest.fixture
def no_cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cookies: each request has to show a ticket."""
    # Hadoop's cookie expires after ten hours.
    monkeypatch.setattr("requests.sessions.extract_cookies_to_jar", lambda *_: None)


@pytest.fixture
def ticket_cache(connect: Connect, patient: Identity, tmp_path: Path) -> Path:
    """The connection's ticket cache, which another program renews; the connection has no keytab."""
    cache = tmp_path / "patient.ccache"
    tickets.acquire(patient, cache)
    connect("patient", keytab_path=None, ticket_cache=str(cache))
    return cache


@pytest.fixture
def later(folder: ClusterSession, token_file: Path) -> Iterator[Act]:
    """A token that acts at the place where a sensor waits for it."""
    yield lambda: folder.hdfs.write(LATER, token_file.read_text(), permission="644")
    folder.hdfs.delete(LATER)


@pytest.mark.usefixtures("no_cookies")
class TestWhenTheTicketExpiresMeanwhile:
    async def test_the_keytab_gives_another(self, connect: Connect, patient: Identity, later: Act) -> None:
        connect("patient")
        async with watching(deferred(file=LATER_ON_HDFS, within=LONG)) as event:
            await asyncio.sleep(1.5 * LIFE.total_seconds())
            assert not event.done()
            await asyncio.to_thread(later)
            assert (await asyncio.wait_for(event, 60)).payload["report"]["tokens"] == 1

    async def test_a_cache_that_somebody_renews_is_read_again(
        self, ticket_cache: Path, patient: Identity, later: Act
    ) -> None:
        async with watching(deferred(file=LATER_ON_HDFS, within=LONG)) as event:
            for _ in range(18):
                await asyncio.sleep(LIFE.total_seconds() / 12)
                await asyncio.to_thread(tickets.acquire, patient, ticket_cache)
            assert not event.done()
            await asyncio.to_thread(later)
            assert (await asyncio.wait_for(event, 60)).payload["report"]["tokens"] == 1

    async def test_with_nothing_left_it_says_so(self, ticket_cache: Path, patient: Identity) -> None:
        event = await fired(deferred(file=LATER_ON_HDFS), seconds=5 * LIFE.total_seconds())

        with pytest.raises(CredentialError, match="expired") as raised:
            sensor(file=LATER_ON_HDFS).resume({}, event)
        assert raised.value.principal == patient.principal
        assert "kstream tickets renew" in raised.value.message
