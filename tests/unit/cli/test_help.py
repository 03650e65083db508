"""What a person types first: the version, help in either spelling, and a word that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import airflow_kstream
from airflow_kstream.cli import _app, main


def ended(*words: str) -> object:
    """Run `kstream` with these words; return its exit code."""
    with pytest.raises(SystemExit) as exited:
        main(words)
    return exited.value.code


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--version") == 0
    assert capsys.readouterr().out.split() == ["kstream", airflow_kstream.__version__]


def test_the_word_help_is_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("streams",), ("streams", "status")):
        assert ended(*words, "--help") == 0
        whole = capsys.readouterr().out
        assert ended("help", *words) == 0
        assert capsys.readouterr().out == whole


@pytest.mark.parametrize("words", [(), ("streams",), ("streams", "status"), ("doctor",)], ids=" ".join)
def test_help_has_two_spellings_everywhere(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*words, "--help") == 0
    whole = capsys.readouterr().out
    assert "Usage" in whole
    assert ended(*words, "-h") == 0
    assert capsys.readouterr().out == whole


def leaves(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each command with its words."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_usage_lines_name_arguments_in_capitals() -> None:
    usages = [
        command.get_usage(command.make_context(name, [], resilient_parsing=True))
        for name, command in leaves(get_command(_app("")))
    ]
    assert len(usages) > 30
    named = "".join(usage.partition("[OPTIONS]")[2] + " " for usage in usages)
    assert [name for name in named.split() if not re.fullmatch(r"[{\[]([A-Z|]+|SPEC\.yaml)[}\]](\.\.\.)?", name)] == []


@pytest.fixture
def away(cluster_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cluster that the environment names too."""
    monkeypatch.setenv("KSTREAM_CLUSTER", "/of/the/environment.yaml")
    return cluster_file


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--cluster /first.yaml tickets list", "/first.yaml"),
        ("-c /first.yaml tickets list", "/first.yaml"),
        ("--cluster=/first.yaml doctor", "/first.yaml"),
        ("--cluster /first.yaml tickets list --cluster /second.yaml", "/second.yaml"),
        ("--cluster /first.yaml tokens push --application-id application_1700000000000_0001", "/first.yaml"),
        ("tickets list", "/of/the/environment.yaml"),
    ],
)
def test_a_cluster_before_the_command_wins_over_the_environment_alone(
    words: str, named: str, away: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(*words.split()) == 2
    assert f"{named} can't be read" in capsys.readouterr().err


def test_a_command_without_a_cluster_takes_no_notice_of_one_before_it(away: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens.yaml").write_text("users: [alice]")
    assert ended("--cluster", "/first.yaml", "tokens", "validate", f"{tmp_path}/tokens.yaml") == 0


def test_a_typing_error_gets_no_advice_about_retries(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("doctor", "--cluster", "/nowhere.yaml") == 2
    assert "/nowhere.yaml" in (said := capsys.readouterr().err)
    assert "etrying" not in said
