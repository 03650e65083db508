"""The running streams that a keytab's state ends, by the key that each was submitted with."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.kerberos.keytab import KdcStatus, KeyVersion, LoginResult
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.policy.streams.horizon.rotation import RenewalRounds
from airflow_kstream.supervise.doctor.keytabs import AffectedStream, KeytabUser, affected_streams
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, application, claim_of

PRINCIPAL, PATH = "streamer@KSTREAM.TEST", "/s.keytab"
HOUR = timedelta(hours=1)
NOW = START + 20 * HOUR
OLD, NEW = KeyVersion(3, "old", START - HOUR), KeyVersion(4, "new", START + 19 * HOUR)


def user(key: KeyVersion | None) -> KeytabUser:
    spec = replace(TICKET_SPEC, credentials=KeytabCredentials(PRINCIPAL, PATH))
    claim = changed(claim_of(spec, 1, START), key=key)
    rounds = RenewalRounds(START, timedelta(days=1))
    return KeytabUser("orders", claim, application(1, ApplicationState.RUNNING), PRINCIPAL, PATH, rounds)


def doomed(key: KeyVersion | None, at_hand: KeyVersion, kdc: KdcStatus) -> AffectedStream | None:
    streams = affected_streams([user(key)], at_hand, kdc, NOW)
    return streams[0] if streams else None


@pytest.mark.parametrize("login", [login for login in LoginResult if login.lasting])
def test_a_login_that_is_refused_for_good_ends_every_stream_with_that_key(login: LoginResult) -> None:
    assert doomed(OLD, OLD, KdcStatus(login))
    assert doomed(None, OLD, KdcStatus(login))


@pytest.mark.parametrize("login", [LoginResult.ACCEPTED, LoginResult.UNREACHABLE, LoginResult.SKEWED])
def test_a_login_that_works_or_proves_nothing_ends_none(login: LoginResult) -> None:
    assert doomed(OLD, OLD, KdcStatus(login)) is None


def test_a_replaced_keytab_ends_the_streams_with_its_old_key_at_a_known_hour() -> None:
    """With rounds at 0 h and 18 h and a keytab of 19 h, the tokens of 18 h are the last ones, and end at 42 h."""
    stream = doomed(OLD, NEW, KdcStatus(LoginResult.ACCEPTED, kvno=4))
    assert stream is not None
    assert stream.loss is not None
    assert stream.loss.dies_from == stream.loss.dies_by == START + 42 * HOUR
    assert "orders (application_1_0001) about 2026-01-02 12:00:00 UTC; its last tokens end" in stream.words
    assert doomed(NEW, NEW, KdcStatus(LoginResult.ACCEPTED, kvno=4)) is None


def test_an_unrecorded_rotation_was_between_the_submission_and_now() -> None:
    stream = doomed(OLD, OLD, KdcStatus(LoginResult.KEY_REFUSED, kvno=4))
    assert stream is not None
    assert stream.loss is not None
    assert (stream.loss.dies_from, stream.loss.dies_by) == (START + 24 * HOUR, START + 42 * HOUR)


def test_a_wrong_keytab_in_place_of_the_right_one_ends_no_stream_with_the_right_one() -> None:
    assert doomed(NEW, OLD, KdcStatus(LoginResult.KEY_REFUSED, kvno=4)) is None
    assert doomed(NEW, OLD, KdcStatus(LoginResult.LOCKED)) is not None
