"""Applications of streams that only sleep: claimed and tagged as a generation is, without a Spark in them."""

from __future__ import annotations

import requests

from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.tokens import TokenLifetimes
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.formats import ClaimDraft
from airflow_kstream.supervise.streams.state_folder import StreamFolder, new_nonce


def claim(session: ClusterSession, spec: StreamSpec, lifetimes: TokenLifetimes) -> StreamId:
    """Claim the stream's first generation."""
    stream = StreamId(spec.name, session.cluster.state_dir)
    StreamFolder(session.hdfs, stream).make_claim(ClaimDraft(1, new_nonce(), spec, lifetimes, {}, ""))
    return stream


def submit(server: str, http: requests.Session, stream: StreamId, megabytes: int = 256) -> str:
    """Submit an application that sleeps for ten minutes as the first generation, and return its id.

    It registers with nobody, so YARN counts it as accepted, and ends it after the expiry of an ApplicationMaster.
    """
    apps = f"{server}/ws/v1/cluster/apps"
    name: str = http.post(f"{apps}/new-application", timeout=60).json()["application-id"]
    submission = {
        "application-id": name,
        "application-name": stream.name,
        "am-container-spec": {"commands": {"command": "sleep 600"}},
        "resource": {"memory": megabytes, "vCores": 1},
        "max-app-attempts": 1,
        "application-tags": {"tag": list(stream.tags(1))},
    }
    http.post(apps, json=submission, timeout=60).raise_for_status()
    return name
