"""Applications that only sleep, without a Spark in them; some are claimed and tagged as a stream's generation is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import requests

from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder, new_nonce
from tests.live.streams import await_that

# Against requests that another site's page sends (RestCsrfPreventionFilter).
_OURS = {"X-XSRF-Header": "test"}


def claim(session: ClusterSession, spec: StreamSpec, lifetimes: TokenLifetimes) -> StreamId:
    """Claim the stream's first generation."""
    stream = StreamId(spec.name, session.cluster.state_dir)
    StreamFolder(session, stream, acting=True).make_claim(ClaimDraft(1, new_nonce(), spec, lifetimes, {}, ""))
    return stream


def submit(server: str, http: requests.Session, stream: StreamId, megabytes: int = 256) -> str:
    """Submit an application that sleeps as the stream's first generation, and return its id."""
    resource = {"memory": megabytes, "vCores": 1}
    return submit_tagged(server, http, stream.name, stream.tags(1), resource=resource)


def submit_tagged(
    server: str, http: requests.Session, name: str, tags: Collection[str] = (), command: str = "sleep 600", **more: Any
) -> str:
    """Submit an application whose only container runs this command, and return its id. `more` are fields of the
    submission, but for `container`: those of the container.

    It registers with nobody, so YARN counts it as accepted, and ends it after the expiry of an ApplicationMaster.
    """
    apps = f"{server}/ws/v1/cluster/apps"
    new: str = http.post(f"{apps}/new-application", headers=_OURS, timeout=60).json()["application-id"]
    submission = {
        "application-id": new,
        "application-name": name,
        "application-tags": {"tag": list(tags)},
        "am-container-spec": {"commands": {"command": command}, **more.pop("container", {})},
        "resource": {"memory": 256, "vCores": 1},
        "max-app-attempts": 1,
        **more,
    }
    http.post(apps, json=submission, headers=_OURS, timeout=60).raise_for_status()
    return new


@contextmanager
def sleeping(session: ClusterSession, name: str, tags: Collection[str] = (), **more: Any) -> Iterator[str]:
    """Yield the id of an application as `submit_tagged` submits it, once it runs or has failed; killed at the end."""
    with closing(kerberos_session(session.identity, session.cluster.tls)) as http:
        app = submit_tagged(session.yarn.active(), http, name, tags, **more)
    try:
        await_that(lambda: _has_begun(session, app), f"{app} runs")
        yield app
    finally:
        session.yarn.kill(app, "the test is over", timedelta(seconds=60))


def _has_begun(session: ClusterSession, app: str) -> bool:
    try:
        return bool(session.yarn.live_places(app)) or not session.yarn.application(app).alive
    except NotFound:
        return False
