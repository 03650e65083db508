"""Tokens and the NameNode that issued them: probed, renewed, cancelled, refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, KstreamError, Unavailable
from airflow_kstream.supervise.tokens import files
from airflow_kstream.supervise.tokens.files import TokenValidity
from tests.live.streams import await_that, cluster
from tests.live.token_makers import access_as, chosen, fetch, identity, issue, leaked, standing
from tests.simulated.token_cases import shown


def test_a_token_is_honoured_until_its_owner_cancels_it(minicluster: Minicluster, tmp_path: Path) -> None:
    """The token comes over RPC: its owner is a principal, which WebHDFS does not know; its renewer is another user."""
    file = fetch(minicluster, tmp_path / "token")
    assert standing(minicluster, file) == TokenValidity(True, "honours it")
    with access_as(minicluster, "streamer") as session:
        assert files.cancel(session, chosen(minicluster, file)) is True
        refused = standing(minicluster, file)
        assert refused.honoured is False
        assert refused.detail.startswith("refuses it: cancelled, or expired without a renewal")
        assert files.cancel(session, chosen(minicluster, file)) is False


def test_a_token_of_webhdfs_is_renewed_and_cancelled_as_its_renewer_and_owner(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    file = issue(minicluster, tmp_path / "token")
    with access_as(minicluster, "streamer") as session:
        until = files.renew(session, chosen(minicluster, file))
        assert abs(until - session.hdfs.now() - minicluster.plan.renew_interval) < timedelta(minutes=1)
        assert standing(minicluster, file).honoured is True
        assert files.cancel(session, chosen(minicluster, file)) is True
    assert standing(minicluster, file).honoured is False


def test_the_standby_is_no_judge_of_a_token(minicluster: Minicluster, tmp_path: Path) -> None:
    """Its answer counts for nothing, whether it comes first or alone."""
    file = issue(minicluster, tmp_path / "token")
    standby, active = standby_and_active(minicluster)
    with cluster(minicluster) as found:
        (both,) = files.validities(replace(found, namenodes=(standby, active)), read_credentials(file))
        (alone,) = files.validities(replace(found, namenodes=(standby,)), read_credentials(file))
    assert both.honoured is True
    assert alone.honoured is None
    assert "state standby" in alone.detail


def test_a_server_that_can_not_be_trusted_is_no_judge_either(minicluster: Minicluster, tmp_path: Path) -> None:
    _, active = standby_and_active(minicluster)
    with cluster(minicluster) as found:
        untrusted = replace(found, namenodes=(active.replace("http://", "https://"),))
        (validity,) = files.validities(untrusted, read_credentials(issue(minicluster, tmp_path / "token")))
    assert validity.honoured is None
    assert "TLS" in validity.detail


def standby_and_active(minicluster: Minicluster) -> tuple[str, str]:
    states = {}
    for url in minicluster.namenodes:
        with kerberos_session(identity(minicluster, "watcher"), Tls()) as session:
            beans = session.get(f"{url}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", timeout=10).json()
        states[beans["beans"][0]["State"]] = url
    return states["standby"], states["active"]


def test_a_principal_that_may_not_renew_or_cancel_learns_who_may(minicluster: Minicluster, tmp_path: Path) -> None:
    token = chosen(minicluster, fetch(minicluster, tmp_path / "token"))
    with access_as(minicluster, "watcher") as watcher, access_as(minicluster, "streamer") as streamer:
        with pytest.raises(Denied, match=r"only its renewer 'yarn' may renew it \(AccessControlException: "):
            files.renew(streamer, token)
        with pytest.raises(Denied, match=r"only its owner 'streamer@KSTREAM\.TEST' and its renewer 'yarn'"):
            files.cancel(watcher, token)
    with (
        access_as(minicluster, "streamer", hadoop_conf_dir=None) as by_web,
        pytest.raises(Denied, match="hadoop_conf_dir"),
    ):
        files.cancel(by_web, token)
    assert standing(minicluster, token.path).honoured is True


def test_a_token_without_a_renewer_is_renewed_by_nobody(minicluster: Minicluster, tmp_path: Path) -> None:
    token = chosen(minicluster, fetch(minicluster, tmp_path / "token", renewer=None))
    with (
        access_as(minicluster, "streamer") as session,
        pytest.raises(Denied, match="issued without a renewer, so nobody may renew it"),
    ):
        files.renew(session, token)


def test_another_clusters_token_is_not_shown_to_this_one(minicluster: Minicluster, tmp_path: Path) -> None:
    """The address leads nowhere: any request to it would fail."""
    credentials = fetch(minicluster, tmp_path / "rpc"), issue(minicluster, tmp_path / "web")
    with cluster(minicluster) as found:
        other = replace(found, default_fs="hdfs://elsewhere", namenodes=("http://192.0.2.1:1",))
        for file in credentials:
            (validity,) = files.validities(other, read_credentials(file))
            assert validity.honoured is None
            assert validity.detail.startswith("not asked: its service '")
            with pytest.raises(InvalidInput, match="is not sent to cluster minicluster: its service"):
                files.choose(other, file, None)


def test_a_token_among_several_is_named_by_its_alias(minicluster: Minicluster, tmp_path: Path) -> None:
    file = fetch(minicluster, tmp_path / "token")
    with cluster(minicluster) as found:
        assert files.choose(found, file, "ha-hdfs:kstream").identifier.renewer == "yarn"
        with pytest.raises(InvalidInput, match=r"0 tokens of a NameNode with alias 'other'.* of: 'ha-hdfs:kstream'"):
            files.choose(found, file, "other")


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """A minicluster without HA whose tokens live for seconds."""
    seconds = timedelta(seconds=1)
    up = Minicluster.up(MiniclusterConfig(tmp_path_factory.mktemp("brief"), frozenset(), 12 * seconds, 18 * seconds))
    yield up
    up.down()


def test_beyond_its_max_date_nothing_renews_a_token(brief: Minicluster, tmp_path: Path) -> None:
    with mock.patch.dict(os.environ, KRB5_CONFIG=str(brief.krb5_conf)), access_as(brief, "streamer") as session:
        token = chosen(brief, issue(brief, tmp_path / "token"))
        await_that(lambda: files.renew(session, token) == token.identifier.max_date, "a renewal is the last one")
        await_that(lambda: session.hdfs.now() > token.identifier.max_date, "the token is past its max date")
        with pytest.raises(CredentialError, match=r"it reached its max date, 20.* UTC, beyond which nothing renews it"):
            files.renew(session, token)
        assert standing(brief, token.path).honoured is False


def test_no_error_below_renew_cancel_and_ask_holds_the_token(minicluster: Minicluster, tmp_path: Path) -> None:
    """Neither the error's words nor a variable of any frame, its own or its causes', hold it."""
    token = chosen(minicluster, fetch(minicluster, tmp_path / "token"))
    with (
        access_as(minicluster, "watcher") as watcher,
        access_as(minicluster, "watcher", hadoop_conf_dir=None) as by_web,
    ):
        dead = replace(watcher, hdfs=Hdfs(("http://localhost:1",), watcher.identity, Tls()))
        for kind, attempt in (
            (Denied, lambda: files.renew(watcher, token)),
            (Denied, lambda: files.cancel(watcher, token)),
            (Denied, lambda: files.cancel(by_web, token)),
            (Unavailable, lambda: files.renew(dead, token)),
        ):
            with pytest.raises(KstreamError) as refused:
                attempt()
            assert isinstance(refused.value, kind)
            assert not leaked(token.path, *shown(refused.value))
