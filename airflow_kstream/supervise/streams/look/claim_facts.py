"""Facts about a claim's tokens that its file lacks, learned from the cluster."""

from __future__ import annotations

from contextlib import suppress
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
    if claim.foreign or (claim.submitted_by_us and Missing.LIFETIMES not in claim.file.missing):
        return claim
    started = claim.adoption.started or (app.started if app else None)
    claim = replace(claim, adoption=replace(claim.adoption, started=started))
    if claim.credentials.lifetimes or not (app and app.alive):
        return claim
    with suppress(KstreamError):
        granted = learn_lifetimes(session.hdfs, session.identity)
        claim = replace(claim, credentials=replace(claim.credentials, lifetimes=granted))
    return claim
