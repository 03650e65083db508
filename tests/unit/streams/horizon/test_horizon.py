"""The end of credentials, and the times of our actions before it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.observation import CredentialLook
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from airflow_kstream.policy.streams.spark.spark_tokens import NOT_RENEWED_CONF, tokens_are_renewed
from tests.simulated.yarn import START, TICKET_SPEC, claim_of

KEYTAB_SPEC = replace(TICKET_SPEC, credentials=KeytabCredentials("streamer@EXAMPLE.COM", "/etc/streamer.keytab"))
CLAIM = claim_of(TICKET_SPEC, 1, START)


def test_a_job_with_a_keytab_has_no_end_of_its_own() -> None:
    ends = horizon(KEYTAB_SPEC.restart, Credentials(claim_of(KEYTAB_SPEC, 1, START)), START)
    assert (ends.reason, ends.hard, ends.plan) == (HorizonReason.NONE, None, None)


def test_a_job_without_a_keytab_ends_at_issue_plus_max_lifetime() -> None:
    for credentials in (TICKET_SPEC.credentials, ProxyUserCredentials("alice")):
        spec = replace(TICKET_SPEC, credentials=credentials)
        ends = horizon(spec.restart, Credentials(claim_of(spec, 1, START)), START)
        assert (ends.reason, ends.hard) == (HorizonReason.TOKEN_MAX_LIFETIME, START + timedelta(days=7))


def test_a_keytab_that_is_declared_later_does_not_help_a_job_submitted_without() -> None:
    assert horizon(KEYTAB_SPEC.restart, Credentials(CLAIM), START).hard == START + timedelta(days=7)


def test_the_nearest_end_is_the_horizon() -> None:
    soon = horizon(TICKET_SPEC.restart, Credentials(CLAIM, time_left=timedelta(hours=3)), START)
    assert (soon.reason, soon.hard) == (HorizonReason.YARN_LIFETIME, START + timedelta(hours=3))


def test_an_adopted_job_is_taken_for_older_than_its_start() -> None:
    adopted = replace(
        CLAIM, adoption=replace(CLAIM.adoption, application="application_1_0001", started=START - timedelta(days=2))
    )
    ends = horizon(TICKET_SPEC.restart, Credentials(adopted), START)
    assert ends.hard == START - timedelta(days=2) - TICKET_SPEC.restart.adopt_margin + timedelta(days=7)


def test_tokens_that_yarn_does_not_renew_end_after_one_renew_interval() -> None:
    """excludeHadoopFileSystems: after a day, not after a week."""
    ends = horizon(TICKET_SPEC.restart, Credentials(CLAIM, CredentialLook(renewed=False)), START)
    assert (ends.reason, ends.hard) == (HorizonReason.NOT_RENEWED, START + timedelta(days=1))
    keytab = horizon(
        KEYTAB_SPEC.restart, Credentials(claim_of(KEYTAB_SPEC, 1, START), CredentialLook(renewed=False)), START
    )
    assert keytab.reason is HorizonReason.NONE


@pytest.mark.parametrize(
    ("excluded", "renewed"),
    [
        (None, True),
        ("", True),
        ("hdfs://other", True),
        ("hdfs://prod", False),
        ("hdfs://other, hdfs://prod:8020/", False),
    ],
)
def test_only_filesystems_that_are_excluded_from_renewal_are_not_renewed(excluded: str | None, renewed: bool) -> None:
    conf = {} if excluded is None else {NOT_RENEWED_CONF: excluded}
    assert tokens_are_renewed("hdfs://prod", {NOT_RENEWED_CONF: "hdfs://prod"} if conf else {}, conf) is renewed


def test_the_age_of_an_adopted_job_that_yarn_hides_is_unknown_and_not_young() -> None:
    """The ResourceManager reports 0 as the start to whom it does not let view the application."""
    adopted = replace(CLAIM, adoption=replace(CLAIM.adoption, application="application_1_0001", started=None))
    assert horizon(TICKET_SPEC.restart, Credentials(adopted), START) == Horizon(HorizonReason.UNKNOWN)
