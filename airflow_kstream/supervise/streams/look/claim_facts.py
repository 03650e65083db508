"""Facts about a claim's tokens that its file lacks, learned from the cluster."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.generation import Claim, Missing
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes


def completed(session: ClusterSession, claim: Claim, app: Application | None) -> Claim:
    """Fill in the lifetimes that the cluster grants now and the application's start, where the claim lacks them.

    Facts that can't be learned now stay unknown. A claim of a newer version is returned unchanged.
    """
    if claim.foreign or (claim.submitted_by_us and Missing.LIFETIMES not in claim.missing):
        return claim
    started = claim.started or (app.started if app else None)
    if claim.lifetimes or not (app and app.alive):
        return replace(claim, started=started)
    try:
        return replace(claim, started=started, lifetimes=learn_lifetimes(session.hdfs, session.identity))
    except KstreamError:
        return replace(claim, started=started)
