"""The envelope of the files that we keep on HDFS: its version is read before any of its fields."""

from __future__ import annotations

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.versioned import read, read_any, write


@pytest.mark.parametrize("indent", [None, 1])
def test_what_is_written_is_read_back(indent: int | None) -> None:
    assert read(write(3, {"by": "ann"}, indent), 3)["by"] == "ann"


def test_the_version_is_the_first_field_of_the_text() -> None:
    assert write(3, {"by": "ann"}) == '{"version": 3, "by": "ann"}'


@pytest.mark.parametrize("other", [2, 4])
def test_a_file_of_another_version_is_refused_by_both_numbers(other: int) -> None:
    with pytest.raises(InvalidInput, match=f"it is of version {other}, and this program reads 3"):
        read(write(other, {}), 3)


def test_a_reader_that_knows_what_to_do_with_other_versions_gets_the_number() -> None:
    version, fields = read_any(write(99, {"nonce": "n"}))
    assert (version, fields["nonce"]) == (99, "n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is not JSON"),
        ("gen", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is not JSON object"),
        ("{}", "its version is None; allowed is a number from 1"),
        ('{"version": "two"}', "its version is 'two'; allowed is a number from 1"),
        ('{"version": true}', "its version is True"),
        ('{"version": 3.0}', "its version is 3.0"),
        ('{"version": 0}', "its version is 0"),
    ],
)
def test_what_has_no_envelope_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_any(text)
