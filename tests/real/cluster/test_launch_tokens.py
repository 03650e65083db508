"""Facts about an application's launch tokens that are known from outside of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.stream import KeytabCredentials, TicketCredentials
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder, new_nonce
from airflow_kstream.supervise.tokens.expiry import watched_tokens
from airflow_kstream.supervise.tokens.launch import launch_tokens
from tests.live.streams import rate_stream
from tests.live.token_makers import access_as, fetch, sleeper


def test_a_streams_claim_tells_when_its_applications_tokens_end(minicluster: Minicluster, tmp_path: Path) -> None:
    hour = TokenLifetimes(timedelta(minutes=10), timedelta(hours=1))
    spec = rate_stream("token-holder", TicketCredentials())
    with access_as(minicluster, "streamer") as session:
        claim = claimed(session, ClaimDraft(1, new_nonce(), spec, hour, {}, "test"))
        stream = StreamId(spec.name, session.cluster.state_dir)
        with sleeper(minicluster, fetch(minicluster, tmp_path / "token"), stream.tags(1)) as app:
            launch = launch_tokens(session, app)
        session.hdfs.delete(stream.folder, recursive=True)
    assert (launch.stream, launch.claim) == ("token-holder", claim)
    assert launch.issued == claim.claimed_at
    assert launch.end == claim.claimed_at + timedelta(hours=1)
    assert launch.horizon is not None
    assert (launch.horizon.reason, launch.horizon.hard) == (HorizonReason.TOKEN_MAX_LIFETIME, launch.end)


def test_a_stream_with_a_keytab_has_no_horizon_of_tokens(minicluster: Minicluster, tmp_path: Path) -> None:
    spec = rate_stream(
        "token-maker", KeytabCredentials(minicluster.principal("streamer"), str(minicluster.keytab("streamer")))
    )
    hour = TokenLifetimes(timedelta(minutes=10), timedelta(hours=1))
    with access_as(minicluster, "streamer") as session:
        with sleeper(minicluster, fetch(minicluster, tmp_path / "token")) as app:
            started = session.yarn.application(app).started
            claimed(session, ClaimDraft(1, new_nonce(), spec, hour, {}, "test", app, started))
            launch = launch_tokens(session, app)
        session.hdfs.delete(StreamId(spec.name, session.cluster.state_dir).folder, recursive=True)
    assert (launch.stream, launch.claim and launch.claim.adoption.application) == ("token-maker", app)
    assert launch.horizon is not None
    assert (launch.horizon.reason, launch.horizon.hard) == (HorizonReason.NONE, None)


def claimed(session: ClusterSession, candidate: ClaimDraft) -> Any:
    stream = StreamId(candidate.spec.name, session.cluster.state_dir)
    return StreamFolder(session, stream, acting=True).make_claim(candidate)


def test_the_clusters_lifetimes_tell_about_anybodys_application(minicluster: Minicluster, tmp_path: Path) -> None:
    with (
        access_as(minicluster, "streamer") as session,
        sleeper(minicluster, fetch(minicluster, tmp_path / "token")) as app,
    ):
        launch = launch_tokens(session, app)
        started = session.yarn.application(app).started
        declared = TokenDeclaration(users=(session.yarn.application(app).user,), within=timedelta(days=1))
        watched = watched_tokens(session, declared)
    assert (app, launch.end) in {(token.subject, token.end) for token in watched.tokens}
    assert started is not None
    assert (launch.stream, launch.claim, launch.horizon) == ("", None, None)
    assert launch.issued == started - RestartPolicy().adopt_margin
    assert launch.end == launch.issued + minicluster.plan.max_lifetime
