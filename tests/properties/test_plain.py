"""Values of any type as plain data that JSON accepts."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.plain import plain
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason

DATACLASS = Horizon(HorizonReason.TOKEN_MAX_LIFETIME, datetime(2026, 3, 1, tzinfo=UTC))
LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.just(DATACLASS)
VALUES = st.recursive(
    LEAVES | st.datetimes(timezones=st.just(UTC)) | st.timedeltas() | st.frozensets(st.text()),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(VALUES)
def test_json_takes_what_is_plain_and_gives_it_back(value: object) -> None:
    assert json.loads(json.dumps(plain(value))) == plain(value)
