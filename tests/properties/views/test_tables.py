"""Text for users: without control characters and passwords, and with moments in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.printable import printable, printable_words
from airflow_kstream.views.tables import cell


@given(st.text())
def test_a_cell_drives_no_terminal(text: str) -> None:
    assert cell(text).plain.isprintable()


@given(st.text())
def test_a_message_keeps_its_lines_and_drives_no_terminal(text: str) -> None:
    assert printable_words(text).replace("\n", "").isprintable()
    assert printable_words(text).count("\n") == text.count("\n")


@given(st.text(), st.text())
def test_two_names_never_look_alike(one: str, other: str) -> None:
    if "://" not in one + other:
        assert (printable(one) == printable(other)) == (one == other)
