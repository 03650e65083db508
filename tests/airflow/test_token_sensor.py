"""What the sensor of a token's end says of wrong fields, and which of its failures only skip the task."""

from __future__ import annotations

import json

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_kstream.model.errors import CredentialError
from tests.live.token_waiting import CONNECTION, poked, sensor
from tests.simulated.fleet import FIELDS


@pytest.fixture(autouse=True)
def connection(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = json.dumps({"conn_type": "kstream", "extra": FIELDS})
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", extra)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "give one of file, stream, application"),
        ({"file": "/a", "stream": "b"}, "give one of file, stream, application"),
        ({"file": "a"}, "absolute path"),
        ({"file": "/a", "within": "soon"}, "is not a duration"),
    ],
)
def test_what_makes_no_sense_fails_at_once(fields: dict[str, str], why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        poked(**fields)


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("word", ["soft_fail", "never_fail"])
def test_what_no_waiting_can_change_skips_the_task(deferrable: bool, word: str) -> None:
    with pytest.raises(AirflowSkipException):
        sensor(file="relative", deferrable=deferrable, **{word: True}).execute({})


@pytest.mark.parametrize(("word", "raised"), [("soft_fail", CredentialError), ("never_fail", AirflowSkipException)])
def test_a_ticket_that_ended_is_no_reason_to_skip_softly(word: str, raised: type[Exception]) -> None:
    fields = {"message": "its ticket expired", "tried": "", "server": "", "principal": ""}
    with pytest.raises(raised, match="its ticket expired"):
        sensor(file="/a", deferrable=True, **{word: True}).resume({}, {"error": fields, "final": False})
