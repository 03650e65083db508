"""`kstream doctor` with options that can't be meant, and its list of checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.policy.doctor.checks import CHECKS
from tests.commands import ran


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--cluster is missing"),
        (("--stream", "a", "--application-id", "application_1_0001"), "--stream and --application-id are both given"),
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
