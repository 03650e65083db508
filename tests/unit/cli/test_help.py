"""What a person types first: the version, help in either spelling, and a word that is wrong."""

from __future__ import annotations

import pytest

import airflow_kstream
from airflow_kstream.cli import main


def ended(*words: str) -> object:
    """Run `kstream` with these words; return its exit code."""
    with pytest.raises(SystemExit) as exited:
        main(words)
    return exited.value.code


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--version") == 0
    assert capsys.readouterr().out.split() == ["kstream", airflow_kstream.__version__]


@pytest.mark.parametrize("words", [(), ("streams",), ("streams", "status"), ("doctor",)], ids=" ".join)
def test_help_has_two_spellings_everywhere(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*words, "--help") == 0
    whole = capsys.readouterr().out
    assert "Usage" in whole
    assert ended(*words, "-h") == 0
    assert capsys.readouterr().out == whole


def test_a_typing_error_gets_no_advice_about_retries(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("doctor", "--cluster", "/nowhere.yaml") == 2
    assert "/nowhere.yaml" in (said := capsys.readouterr().err)
    assert "etrying" not in said
