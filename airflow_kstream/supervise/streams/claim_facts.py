"""What a claim doesn't tell of its tokens, asked of the cluster."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import Claim, Missing
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes


def completed(session: ClusterSession, claim: Claim, app: Application | None) -> Claim:
    """The claim with the lifetimes that the cluster grants now and its application's start, where it lacks them.

    What can't be learned now stays unknown. A newer claim is left as it is.
    """
    if claim.newer or (claim.submitted_by_us and Missing.LIFETIMES not in claim.missing):
        return claim
    started = claim.started or (app.started if app else None)
    if claim.lifetimes or not (app and app.alive):
        return replace(claim, started=started)
    try:
        return replace(claim, started=started, lifetimes=learn_lifetimes(session.hdfs, session.identity))
    except KstreamError:
        return replace(claim, started=started)
