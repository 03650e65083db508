"""Rows that any task of any DAG may have written: each page shows every stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.simulated.rows import ODD, WHOLE, paths, put, require_shown

JSON = st.recursive(
    st.sampled_from(ODD) | st.text(max_size=9) | st.integers() | st.floats() | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CHANGES = st.dictionaries(st.sampled_from(sorted(paths(WHOLE), key=str)), JSON, max_size=6)


@given(CHANGES.map(lambda changes: put(WHOLE, changes)))
def test_whatever_rows_hold_each_page_shows_every_stream(rows: Mapping[str, Any]) -> None:
    require_shown(rows)
