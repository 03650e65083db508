"""Holding a declaration against what its connection allows, before anything of it is submitted or kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_kstream.clients.local.regular_files import real_path
from airflow_kstream.model.airflow_options import AirflowOptions, NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.policy.streams.restart.allowed import refusals, words
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream


def not_allowed(spec: StreamSpec, cluster: Cluster, claim: Claim | None = None) -> Allow:
    """Return what the connection does not allow of a declaration, as the lines that would allow it.

    What the stream's newest claim has is not among it, if a supervisor kept that declaration: what a claim says by
    itself, its own job may have written. Paths are judged by where they lead on this host.
    """
    running = claim.spec if claim and claim.file.copied and isinstance(claim.spec, StreamSpec) else None
    return refusals(spec, cluster, running, real_path)


def require_allowed(spec: StreamSpec, cluster: Cluster, claim: Claim | None = None) -> None:
    """Raises InvalidInput: when the connection does not allow what is to be submitted, as `not_allowed` tells.

    Notifiers and brokers are not part of what is submitted: those that are not allowed tell nothing, and keep no stream
    from running.
    """
    submitted = replace(spec, notify=NotifyPolicy(), airflow=AirflowOptions(), kafka=KafkaPolicy())
    if missing := not_allowed(submitted, cluster, claim):
        raise InvalidInput(words(missing, cluster.name), tried=f"check {spec.name} against {cluster.name}")


def needed_by(specs: Iterable[StreamSpec], cluster: Cluster) -> Allow:
    """Return what declarations use beside what the connection has, with their paths as they are on this host."""
    unbounded, needed = replace(cluster, allow=Allow()), Allow()
    for spec in specs:
        needed = needed.with_all(not_allowed(spec, unbounded))
    return needed


def needed_by_all(streams: Iterable[RegisteredStream], cluster: Cluster) -> Allow:
    """Return the same of the streams' newest claims, by the copies of their declarations that supervisors kept: nobody
    else's word is to become a line of the connection."""
    claims = (stream.newest for stream in streams if isinstance(stream.newest, Claim))
    kept = (claim.spec for claim in claims if claim.file.copied)
    return needed_by((spec for spec in kept if isinstance(spec, StreamSpec)), cluster)
