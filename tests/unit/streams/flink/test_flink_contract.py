"""What the jar in a Flink job's JobManager is told, and what it answers."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams import flink_contract
from airflow_kstream.model.streams.contract import CONTRACT, generation_of_file, is_draft, is_known_file, newest_trace
from airflow_kstream.model.streams.flink_conf import BACKOFF
from airflow_kstream.model.streams.flink_contract import (
    KeptToken,
    Resume,
    StopState,
    jar_settings,
    kept_file,
    read_kept,
    read_resume,
    resume_file,
)
from tests.flink_jar import FOLDER

STAMP = {
    "contract": "1",
    "stream": "orders",
    "generation": 7,
    "application": "application_1_0001",
    "time": "2026-11-28T17:00:00Z",
}
TOKEN = {
    "kind": "HDFS_DELEGATION_TOKEN",
    "service": "ha-hdfs:prod",
    "owner": "orders@EXAMPLE.COM",
    "real_user": "",
    "renewer": "yarn",
    "issued": 1_796_000_000_000,
    "max_date": 1_796_604_800_000,
    "sequence_number": 41,
    "until": None,
}
KEPT = STAMP | {
    "every_seconds": 300,
    "rewritten": "2026-11-28T16:58:03Z",
    "trouble": "",
    "tokens": [TOKEN, {"kind": "YARN_AM_RM_TOKEN", "service": "10.0.0.1:8030", "until": None}],
}
RESUME = STAMP | {
    "state": "completed",
    "job": "ab" * 16,
    "trigger": "cd" * 16,
    "target": "hdfs://prod/savepoints/abab",
    "savepoint": "hdfs://prod/savepoints/abab/savepoint-1",
    "why": "",
}
AT = datetime(2026, 11, 28, 17, tzinfo=UTC)


def test_the_jar_and_its_supervisor_speak_the_same_version_with_the_same_settings() -> None:
    source = (FOLDER / "kstream/flink/Settings.java").read_text()
    names = set(re.findall(r'(?:text|time)\("([a-z-]+)"|PREFIX \+ "([a-z-]+)"', source))
    settings = jar_settings("orders", 7, "hdfs://x", takes_tokens=True).keys() - {BACKOFF}
    told = {key.removeprefix(flink_contract.PREFIX) for key in settings}
    times = (flink_contract.LOOK_EVERY, flink_contract.ROUND_EVERY, flink_contract.CONFIRM_EVERY)
    assert {one or other for one, other in names} == told | {key.removeprefix(flink_contract.PREFIX) for key in times}
    assert f'PREFIX = "{flink_contract.PREFIX}"' in source
    assert f'VERSION = "{CONTRACT}"' in source
    minutes = flink_contract.DEFAULT_CONFIRM // timedelta(minutes=1)
    assert f'time("confirm-every", Duration.ofMinutes({minutes}))' in source


def test_a_round_that_fails_delays_pushed_tokens_by_no_more_than_a_minute() -> None:
    settings = jar_settings("orders", 7, "hdfs://prod/kstream/orders", takes_tokens=True)
    assert settings["security.delegation.tokens.renewal.retry.backoff"] == "1 min"


def test_a_job_with_a_keytab_is_pushed_no_tokens() -> None:
    assert jar_settings("orders", 7, "hdfs://prod/kstream/orders") == {
        "security.delegation.token.provider.kstream.contract": "1",
        "security.delegation.token.provider.kstream.stream": "orders",
        "security.delegation.token.provider.kstream.generation": "7",
        "security.delegation.token.provider.kstream.state": "hdfs://prod/kstream/orders",
    }


@pytest.mark.parametrize("name", [kept_file(7), resume_file(7)])
def test_its_answers_belong_to_their_generation(name: str) -> None:
    assert (generation_of_file(name), newest_trace([name]), is_known_file(name)) == (7, 7, True)
    assert is_draft(f".{name}.5f1c.tmp")


def test_a_confirmation_tells_the_tokens_of_new_taskmanagers() -> None:
    kept = read_kept(json.dumps(KEPT), 7)
    assert (kept.application, kept.at, kept.every) == ("application_1_0001", AT, timedelta(minutes=5))
    assert kept.rewritten == datetime(2026, 11, 28, 16, 58, 3, tzinfo=UTC)
    assert kept.tokens == (
        KeptToken(
            "HDFS_DELEGATION_TOKEN",
            "ha-hdfs:prod",
            "orders@EXAMPLE.COM",
            "",
            "yarn",
            datetime.fromtimestamp(1_796_000_000, UTC),
            datetime.fromtimestamp(1_796_604_800, UTC),
            41,
        ),
        KeptToken("YARN_AM_RM_TOKEN", "10.0.0.1:8030"),
    )


def test_a_pushed_token_has_an_end_of_its_own() -> None:
    pushed = KEPT | {"tokens": [TOKEN | {"until": 1_796_086_400_000}]}
    assert read_kept(json.dumps(pushed), 7).tokens[0].until == datetime.fromtimestamp(1_796_086_400, UTC)


def test_a_token_file_that_was_never_rewritten_holds_what_was_submitted() -> None:
    assert read_kept(json.dumps(KEPT | {"rewritten": ""}), 7).rewritten is None


@pytest.mark.parametrize(("later", "silent"), [(timedelta(minutes=10), False), (timedelta(minutes=11), True)])
def test_a_keeper_that_misses_two_confirmations_is_silent(later: timedelta, silent: bool) -> None:
    assert read_kept(json.dumps(KEPT), 7).is_silent(AT + later) is silent


def test_an_answer_to_a_stop_names_the_savepoint() -> None:
    assert read_resume(json.dumps(RESUME), 7) == Resume(
        7,
        "application_1_0001",
        AT,
        StopState.COMPLETED,
        "ab" * 16,
        "cd" * 16,
        "hdfs://prod/savepoints/abab",
        "hdfs://prod/savepoints/abab/savepoint-1",
        "",
    )


@pytest.mark.parametrize("state", ["asked", "failed"])
def test_a_stop_that_is_not_complete_names_none(state: str) -> None:
    assert read_resume(json.dumps(RESUME | {"state": state, "savepoint": ""}), 7).state is StopState(state)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"contract": "2"}, "its contract is '2'"),
    ({"generation": 8}, "its generation is 8"),
    ({"generation": "7"}, "its generation is '7'"),
    ({"application": None}, "its application is None"),
    ({"time": "2026-11-28"}, "its time is '2026-11-28'"),
    ({"time": "yesterday"}, "its time is 'yesterday'"),
    ({"time": "2026-11-28T17:00:00+02:00"}, "expected: a moment in UTC"),
]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        *WRONG,
        ({"every_seconds": 0}, "its every_seconds is 0"),
        ({"every_seconds": True}, "its every_seconds is True"),
        ({"every_seconds": 1e300}, "its every_seconds is 1e"),
        ({"rewritten": 1}, "its rewritten is 1"),
        ({"tokens": {}}, "its tokens is {}"),
        ({"tokens": ["a"]}, "a list of objects"),
        ({"tokens": [TOKEN | {"issued": 10**30}]}, "its issued is 1000"),
        ({"tokens": [TOKEN | {"max_date": -1}]}, "its max_date is -1"),
        ({"tokens": [TOKEN | {"owner": None}]}, "its owner is None"),
        ({"tokens": [{"kind": "K"}]}, "its service is None"),
    ],
)
def test_a_confirmation_of_another_form_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_kept(json.dumps(KEPT | changed), 7)
    assert why in refused.value.message


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        *WRONG,
        ({"state": "done"}, "its state is 'done'; allowed: asked, completed, failed"),
        ({"savepoint": ""}, "its state is completed, and its savepoint ''"),
        ({"state": "failed"}, "its state is failed, and its savepoint 'hdfs:"),
        ({"target": 5}, "its target is 5"),
    ],
)
def test_an_answer_to_a_stop_of_another_form_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_resume(json.dumps(RESUME | changed), 7)
    assert why in refused.value.message


@pytest.mark.parametrize(("text", "why"), [("", "not JSON"), ("[" * 100_000, "not JSON"), ("[7]", "not JSON object")])
def test_what_is_no_object_is_refused(text: str, why: str) -> None:
    for read in (read_kept, read_resume):
        with pytest.raises(InvalidInput) as refused:
            read(text, 7)
        assert why in refused.value.message
