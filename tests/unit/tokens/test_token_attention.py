"""Which watched tokens need a hand: those that end soon, before they end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.policy.events.attention import MOST, WatchedToken, token_hands

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
JOB = "application_1_0001"


def job(left: timedelta, subject: str = JOB) -> WatchedToken:
    return WatchedToken(subject, "the launch tokens of this job of etl", NOW + left)


def file(left: timedelta) -> WatchedToken:
    return WatchedToken("/etc/etl.token", "HDFS_DELEGATION_TOKEN 1 of etl for nn:8020", NOW + left, in_file=True)


@pytest.mark.parametrize(
    ("token", "needed"),
    [
        (job(25 * HOUR), False),
        (job(24 * HOUR), True),
        (job(timedelta(seconds=1)), True),
        # It lives on, so it makes its own tokens or uses none; what could be done is past.
        (job(timedelta()), False),
        (job(-30 * DAY), False),
        (file(25 * HOUR), False),
        (file(HOUR), True),
        (file(-HOUR), True),
    ],
)
def test_a_hand_is_needed_while_it_can_still_help(token: WatchedToken, needed: bool) -> None:
    assert bool(token_hands([token], {}, NOW, DAY)) is needed


def test_a_hand_tells_what_ends_when_and_what_to_do() -> None:
    soon, unread = token_hands([job(5 * HOUR)], {"/etc/gone": "no such file"}, NOW, DAY)
    assert soon.sentence.startswith(
        f"{JOB}: the launch tokens of this job of etl end in 5h (2026-03-01 05:00:00 UTC), and nobody can renew them "
        "beyond that. Way out: restart it before then, or declare it as a stream"
    )
    assert (unread.subject, unread.why) == ("/etc/gone", "no such file")


def test_of_a_file_the_first_token_to_end_counts_and_the_nearest_end_comes_first() -> None:
    first, second = token_hands([file(9 * HOUR), file(3 * HOUR), job(5 * HOUR)], {}, NOW, DAY)
    assert (first.subject, second.subject) == ("/etc/etl.token", JOB)
    assert "in 3h" in first.why


def test_a_thousand_jobs_are_a_bounded_result() -> None:
    needed = token_hands([job(HOUR, f"application_1_{number:04}") for number in range(1000)], {}, NOW, DAY)
    assert len(needed) == MOST
    assert needed[-1].subject == "901 more"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it names nothing to watch; give one or more of users, tags, applications, files"),
        ("within: 1d", "it names nothing to watch"),
        ("user: etl", "user: there is no such field; the fields are users, tags, applications, files, within"),
        ("users: etl", "users is 'etl'; allowed is a list"),
        ("applications: [job_1]", "applications"),
        ("files: [etl.token]", "files"),
        ("{users: [etl], within: soon}", "within"),
        ("{users: [etl], every: 1s}", "every"),
        ("{users: [etl], airflow: {quue: x}}", "airflow.quue: there is no such field"),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as error:
        TokenDeclaration.from_yaml(text)
    assert why in error.value.message
