"""What others wrote, as Airflow stores it: its channels speak UTF-8, and PostgreSQL's JSON has no NUL and no NaN."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import StreamEnded
from airflow_kstream.model.printable import storable
from airflow_kstream.policy.events.attention import Hand
from airflow_kstream.policy.states.due import DETAIL, fitted

ODD = "boom \0 and \ud800"
LEFT = r"boom \x00 and \ud800"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({ODD: [ODD, (ODD,)]}, {LEFT: [LEFT, [LEFT]]}),
        ([float("nan"), float("-inf"), 0.5], [None, None, 0.5]),
        ([2**64, -(2**64), 2**63 - 1, True, None], [2**63 - 1, 1 - 2**63, 2**63 - 1, True, None]),
        ("ж \U0001f600 \n \x1b", "ж \U0001f600 \n \x1b"),
    ],
)
def test_only_what_can_not_be_stored_is_replaced(given: Any, stored: Any) -> None:
    assert storable(given) == stored
    json.dumps(storable(given), ensure_ascii=False, allow_nan=False).encode()


def test_rows_hands_and_errors_can_be_stored_whatever_they_quote() -> None:
    assert fitted({"verdict": ODD}, DETAIL) == {"verdict": LEFT}
    assert Hand("orders", "blind", ODD, "look").to_json()["why"] == LEFT
    assert LEFT in str(StreamEnded(ODD))


def test_yarns_words_on_an_application_can_be_stored_wherever_they_go() -> None:
    """Logs quote them, too."""
    app = Application.from_json({"id": "application_1_0001", "state": "FAILED", "diagnostics": ODD})
    assert app.diagnostics == LEFT
