"""`kstream doctor` where nobody answers, and with options that can't be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.policy.doctor.checks import CHECKS
from tests.live.cli import ran


def test_servers_that_are_away_leave_everything_undecided_and_the_command_fails(cluster_file: Path) -> None:
    result = ran("doctor", "--cluster", str(cluster_file), "--json")
    assert result.code == 1
    undecided = {one["check"]: one["fact"] for one in result.data["undecided"]}
    found = {one["check"] for one in result.data["findings"]}
    assert {*undecided, *found, "canonical-names", "enctypes", "kdc"} == {row.id for row in CHECKS}
    assert result.data["blind"] is True
    assert "http://localhost:1" in undecided["rm-privileges"]["why"]
    assert [one["id"] for one in result.data["findings"]] == ["keytabs:watcher@EXAMPLE.COM unreadable"]


def test_what_could_not_be_asked_is_shown_with_its_reason(cluster_file: Path) -> None:
    result = ran("doctor", "--cluster", str(cluster_file))
    assert "could not be asked, because" in result.words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--cluster is missing"),
        (("--stream", "a", "--application-id", "b"), "--stream and --application-id are both given"),
        (("--json", "--html"), "--json and --html are both given"),
        (("--baseline", "/no/such/file"), "/no/such/file can't be read"),
    ],
)
def test_options_that_can_t_be_meant_are_refused(cluster_file: Path, options: tuple[str, ...], words: str) -> None:
    cluster = ("--cluster", str(cluster_file)) if options else ()
    result = ran("doctor", *cluster, *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_a_wrong_baseline_is_refused_with_its_file(cluster_file: Path, tmp_path: Path) -> None:
    (file := tmp_path / "accepted.yaml").write_text("accepted: [{finding: a}]")
    result = ran("doctor", "--cluster", str(cluster_file), "--baseline", str(file))
    assert result.code == 2
    assert f"{file}: accepted.0.by is missing" in result.err


def test_the_list_names_each_check_and_its_source() -> None:
    result = ran("doctor", "--list")
    assert result.code == 0
    assert all(row.id in result.words for row in CHECKS)
    assert "SPARK-37787" in result.words
