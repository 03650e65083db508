"""Tokens and the NameNodes that issue them: whose they are, who renews and cancels them, and what ends them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import cancel_by_identifier, mint
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import CredentialError, Denied
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import FreshToken, HadoopCredentials, credentials_file
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, DelegationToken, Token
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.tokens import files
from airflow_kstream.supervise.tokens.files import TokenValidity
from tests.live.streams import cluster
from tests.live.token_makers import access_as, chosen, fetch, identity, issue, standing
from tests.simulated.hadoop_writers import identifier_bytes


@pytest.fixture(scope="module")
def fetched(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A token that `hdfs fetchdt` got over RPC, of which `yarn` is the renewer; no test ends it."""
    return fetch(minicluster, tmp_path_factory.mktemp("test_tokens") / "token")


def test_over_rpc_the_owner_is_a_principal_and_over_webhdfs_a_short_name(
    minicluster: Minicluster, fetched: Path, tmp_path: Path
) -> None:
    by_rpc, by_web = chosen(minicluster, fetched), chosen(minicluster, issue(minicluster, tmp_path / "token"))
    assert (by_rpc.token.kind, by_web.token.kind) == (HDFS_TOKEN, "WEBHDFS delegation")
    assert (by_rpc.identifier.owner, by_rpc.identifier.renewer) == (minicluster.principal("streamer"), "yarn")
    assert (by_web.identifier.owner, by_web.identifier.renewer) == (getuser(), getuser())
    for read in (by_rpc.identifier, by_web.identifier):
        assert read.max_date - read.issued == minicluster.plan.max_lifetime


def test_a_token_is_honoured_until_its_owner_cancels_it(minicluster: Minicluster, tmp_path: Path) -> None:
    """The owner of a token of RPC is a principal, which WebHDFS does not know; its renewer is another user."""
    file = fetch(minicluster, tmp_path / "token")
    assert standing(minicluster, file) == TokenValidity(True, "honours it")
    with access_as(minicluster, "streamer") as session:
        assert files.cancel(session, chosen(minicluster, file)) is True
        refused = standing(minicluster, file)
        assert refused.honoured is False
        assert refused.detail.startswith("refuses it: cancelled, or expired without a renewal")
        assert files.cancel(session, chosen(minicluster, file)) is False


def test_a_token_of_webhdfs_is_renewed_for_an_interval_and_cancelled(minicluster: Minicluster, tmp_path: Path) -> None:
    file = issue(minicluster, tmp_path / "token")
    with access_as(minicluster, "streamer") as session:
        until = files.renew(session, chosen(minicluster, file))
        assert abs(until - session.hdfs.now() - minicluster.plan.renew_interval) < timedelta(minutes=1)
        assert standing(minicluster, file).honoured is True
        assert files.cancel(session, chosen(minicluster, file)) is True
    assert standing(minicluster, file).honoured is False


def test_a_token_is_renewed_by_its_renewer_alone(minicluster: Minicluster, tmp_path: Path) -> None:
    with closing(Hdfs(minicluster.namenodes, identity(minicluster, "streamer"), Tls())) as hdfs:
        token = chosen(minicluster, write_private(tmp_path / "token", hdfs.new_token("watcher").encode()))
    with access_as(minicluster, "streamer") as session, pytest.raises(Denied, match="only its renewer 'watcher' may"):
        files.renew(session, token)
    with access_as(minicluster, "watcher") as session:
        assert files.renew(session, token) <= token.identifier.max_date


def test_a_token_is_cancelled_by_its_owner_and_its_renewer_alone(minicluster: Minicluster, fetched: Path) -> None:
    """Only over RPC does a NameNode know a principal as a token's owner."""
    token = chosen(minicluster, fetched)
    with (
        access_as(minicluster, "watcher") as watcher,
        pytest.raises(Denied, match=r"only its owner 'streamer@KSTREAM\.TEST' and its renewer 'yarn'"),
    ):
        files.cancel(watcher, token)
    with (
        access_as(minicluster, "streamer", hadoop_conf_dir=None) as by_web,
        pytest.raises(Denied, match="hadoop_conf_dir"),
    ):
        files.cancel(by_web, token)
    assert standing(minicluster, fetched).honoured is True


def test_a_token_without_a_renewer_is_renewed_by_nobody(minicluster: Minicluster, fetched: Path) -> None:
    """A NameNode reads who may renew it before it looks at the password."""
    with access_as(minicluster, "streamer") as session, pytest.raises(Denied, match="without a renewer, so nobody"):
        files.renew(session, rewritten(minicluster, fetched, renewer=""))


def test_beyond_its_max_date_nothing_renews_a_token(minicluster: Minicluster, fetched: Path) -> None:
    """A NameNode reads the date in the token itself, before it looks at the password."""
    token = rewritten(minicluster, fetched, renewer="watcher", max_date=datetime.now(UTC) - timedelta(minutes=1))
    with (
        access_as(minicluster, "watcher") as session,
        pytest.raises(CredentialError, match=r"it reached its max date, 20.* UTC, beyond which nothing renews it"),
    ):
        files.renew(session, token)


def test_a_token_that_was_changed_is_refused(minicluster: Minicluster, fetched: Path) -> None:
    changed = rewritten(minicluster, fetched, owner=minicluster.principal("hdfs"))
    assert standing(minicluster, changed.path).honoured is False


def rewritten(minicluster: Minicluster, file: Path, **fields: Any) -> files.ChosenToken:
    """Return the token with other fields in its identifier, and the password of the one that was issued."""
    content = SecretBytes(file.read_bytes())
    (token,) = HadoopCredentials.read(content).tokens
    identifier = token.identifier
    assert isinstance(identifier, DelegationToken)
    changed = identifier_bytes(token.kind, replace(identifier, **fields))
    password = SecretBytes(content.reveal()[token.password_place])
    fresh = FreshToken("", token.service, changed, password, datetime.now(UTC))
    other = file.with_name("-".join(fields))
    other.unlink(missing_ok=True)
    return chosen(minicluster, write_private(other, credentials_file((fresh,)).reveal()))


def test_the_standby_is_no_judge_of_a_token(minicluster: Minicluster, fetched: Path) -> None:
    """Its answer counts for nothing, whether it comes first or alone."""
    standby, active = standby_and_active(minicluster)
    with cluster(minicluster) as found:
        (both,) = files.validities(replace(found, namenodes=(standby, active)), read_credentials(fetched))
        (alone,) = files.validities(replace(found, namenodes=(standby,)), read_credentials(fetched))
    assert both.honoured is True
    assert alone.honoured is None
    assert "state standby" in alone.detail


def standby_and_active(minicluster: Minicluster) -> tuple[str, str]:
    states = {}
    for url in minicluster.namenodes:
        with kerberos_session(identity(minicluster, "watcher"), Tls()) as session:
            beans = session.get(f"{url}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", timeout=10).json()
        states[beans["beans"][0]["State"]] = url
    return states["standby"], states["active"]


def test_a_token_that_is_made_over_rpc_names_both_principals(session: ClusterSession, minicluster: Minicluster) -> None:
    """A proxy user's token has the user that it acts for as its owner, and the proxy user as its real user.

    The renewer, given as a principal, is a short name by the NameNode's own rules.
    """
    conf, gateway = HadoopConf(str(session.cluster.hadoop_conf_dir)), identity(minicluster, "gateway")
    own = made(session, conf, session.identity)
    proxied = made(session, conf, replace(gateway, do_as=getuser()))
    assert (own.owner, own.renewer, own.real_user) == (minicluster.principal("streamer"), getuser(), "")
    assert (proxied.owner, proxied.renewer, proxied.real_user) == (getuser(), "gateway", gateway.principal)


def made(session: ClusterSession, conf: HadoopConf, who: Identity) -> DelegationToken:
    token = mint(conf, session.cluster.default_fs, who)
    cancel_by_identifier(conf, session.cluster.default_fs, who, token.identifier)
    return token.read


def test_a_token_is_cancelled_by_its_identifier_without_its_password(
    session: ClusterSession, minicluster: Minicluster, tmp_path: Path
) -> None:
    conf = HadoopConf(str(session.cluster.hadoop_conf_dir))
    token = mint(conf, session.cluster.default_fs, session.identity)
    file = write_private(tmp_path / "token", credentials_file((token,)).reveal())
    assert abs(token.until - session.hdfs.now() - minicluster.plan.renew_interval) < timedelta(minutes=1)
    assert standing(minicluster, file).honoured is True
    cancel_by_identifier(conf, session.cluster.default_fs, session.identity, token.identifier)
    assert standing(minicluster, file).honoured is False


def test_the_resourcemanagers_own_token_is_read_as_it_tells_it(session: ClusterSession) -> None:
    with closing(kerberos_session(session.identity, session.cluster.tls)) as http:
        url = f"{session.yarn.active()}/ws/v1/cluster/delegation-token"
        answer = http.post(url, json={"renewer": "yarn"}, headers={"X-XSRF-Header": "test"}, timeout=60).json()
    token = Token.from_url_string(SecretBytes(answer["token"].encode()))
    assert token.kind == answer["kind"] == "RM_DELEGATION_TOKEN"
    read = token.identifier
    assert isinstance(read, DelegationToken)
    assert (read.owner, read.renewer) == (answer["owner"], "yarn")
    assert read.max_date.timestamp() * 1000 == pytest.approx(answer["max-validity"], abs=1)
