"""The fields of a form are those of what it fills in: their kinds, defaults and words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_kstream.model.forms import default_text, form_of, help_of
from airflow_kstream.model.leases.requests import LeaseDeclaration, RecoveryRequest


def test_what_a_kind_allows_is_what_its_field_of_a_form_takes() -> None:
    assert form_of(LeaseDeclaration, "in_all") == {
        "default": None,
        "title": "At once in all",
        "description": help_of(RecoveryRequest, "in_all"),
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 1_000_000,
    }


def test_a_list_that_must_name_something_may_not_be_left_out() -> None:
    assert [form_of(LeaseDeclaration, name)["type"] for name in ("paths", "patterns")] == ["array", ["array", "null"]]


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (timedelta(minutes=10), "10m"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(), "0s"),
        (timedelta(days=1, hours=1, seconds=1), "90001s"),
    ],
)
def test_a_duration_is_shown_as_people_write_it_and_loses_nothing(duration: timedelta, shown: str) -> None:
    assert default_text(duration) == shown
