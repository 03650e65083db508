"""A stream that started with an old key: the time of its first failed renewal, and of its death."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import HorizonReason, TokenRound
from airflow_kstream.model.streams.observation import CredentialLook
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from airflow_kstream.policy.streams.horizon.rotation import RenewalRounds, key_loss
from airflow_kstream.policy.streams.spark.spark_tokens import RATIO_CONF, renewal_ratio
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, claim_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ROUNDS = RenewalRounds(START, DAY)
OLD, NEW = KeyVersion(3, "old"), KeyVersion(4, "new", START + 20 * HOUR)
SPEC = replace(TICKET_SPEC, credentials=KeytabCredentials("streamer@KSTREAM.TEST", "/s.keytab"))


def claim() -> Claim:
    return changed(claim_of(SPEC, 1, START), key=OLD)


def test_the_first_round_after_a_rotation_fails_and_older_tokens_live_on() -> None:
    """Rounds at 0 h, 18 h, 36 h: a rotation at 20 h leaves the tokens of 18 h, which end at 42 h."""
    loss = key_loss(ROUNDS, START + 20 * HOUR, START + 20 * HOUR)
    assert loss.fails_from == loss.fails_by == START + 36 * HOUR
    assert loss.dies_from == loss.dies_by == START + 42 * HOUR


def test_a_rotation_with_known_bounds_has_bounds_for_the_end_of_the_stream() -> None:
    loss = key_loss(ROUNDS, START + 1 * HOUR, START + 20 * HOUR)
    assert (loss.fails_from, loss.fails_by) == (START + 18 * HOUR, START + 36 * HOUR)
    assert (loss.dies_from, loss.dies_by) == (START + 24 * HOUR, START + 42 * HOUR)


def test_a_driver_that_had_no_round_of_its_own_may_live_until_its_launch_tokens_end() -> None:
    """The ResourceManager renews the launch tokens, regardless of the keytab."""
    starting = replace(ROUNDS, slack=timedelta(minutes=2), launch_tokens_end=START + 7 * DAY)
    assert key_loss(starting, START, START + timedelta(minutes=1)).dies_by == START + 7 * DAY
    assert key_loss(starting, START, START + HOUR).dies_by < START + 2 * DAY


def test_the_ratio_is_the_last_word_of_the_confs_or_sparks_own() -> None:
    assert renewal_ratio({}, {}) == 0.75
    assert renewal_ratio({RATIO_CONF: "0.5"}, {}) == 0.5
    assert renewal_ratio({RATIO_CONF: "0.5"}, {RATIO_CONF: "0.6"}) == 0.6
    assert renewal_ratio({RATIO_CONF: "0.5"}, {RATIO_CONF: "often"}) == 0.5


def test_a_replaced_keytab_gives_a_horizon_and_a_restart_that_is_never_blind() -> None:
    now = START + 21 * HOUR
    ends = horizon(SPEC.restart, Credentials(claim(), CredentialLook(NEW)), now)
    assert (ends.reason, ends.hard) == (HorizonReason.KEYTAB_ROTATED, START + 42 * HOUR)
    assert ends.plan is not None
    assert START + 20 * HOUR <= ends.plan <= START + 20 * HOUR + 0.1 * (22 * HOUR)
    assert not ends.forced(START + 50 * HOUR)


def test_a_round_that_the_driver_told_makes_the_end_exact() -> None:
    """Its first round comes when it runs, a while after its claim."""
    now, told = START + 21 * HOUR, TokenRound(START + HOUR, START + HOUR + DAY, 18 * HOUR)
    ends = horizon(SPEC.restart, Credentials(claim(), CredentialLook(NEW, rounds=(told,))), now)
    assert ends.hard == told.at + 18 * HOUR + DAY
    later = horizon(
        SPEC.restart, Credentials(claim(), CredentialLook(replace(NEW, stamped=START + 2 * HOUR), rounds=(told,))), now
    )
    assert later.hard == told.tokens_end


def test_a_rotation_weeks_after_the_start_still_leaves_the_last_round_its_tokens() -> None:
    rotated = replace(NEW, stamped=START + timedelta(days=60))
    ends = horizon(SPEC.restart, Credentials(claim(), CredentialLook(rotated)), START + timedelta(days=60))
    assert ends.hard is not None
    assert timedelta(hours=5) < ends.hard - START - timedelta(days=60) <= DAY


def test_the_same_key_an_older_one_or_an_unknown_one_changes_nothing() -> None:
    for at_hand in (OLD, replace(OLD, stamped=START), KeyVersion(2, "older"), None):
        assert (
            horizon(SPEC.restart, Credentials(claim(), CredentialLook(at_hand)), START + HOUR).reason
            is HorizonReason.NONE
        )
    assert (
        horizon(
            SPEC.restart,
            Credentials(changed(claim(), key=None), CredentialLook(NEW)),
            START + HOUR,
        ).reason
        is HorizonReason.NONE
    )
