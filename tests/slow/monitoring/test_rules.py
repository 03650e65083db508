"""The rules, by Prometheus's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from airflow_kstream.monitoring import NAMES, text_of

pytestmark = pytest.mark.prometheus


@pytest.fixture(params=["", "https://docs.example.com/a b"], ids=["plain", "linked"])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text(text_of(name, request.param))
    return tmp_path


def promtool(files: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *words], cwd=files, capture_output=True, text=True, check=False)


def test_the_rules_are_well_formed(files: Path) -> None:
    done = promtool(files, "check", "rules", "--lint=all", "--lint-fatal", "alerts.rules.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_fire_when_they_should_and_else_not(files: Path) -> None:
    done = promtool(files, "test", "rules", "alerts.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("rule", "defect"),
    [
        ("absent(time() - kstream_cluster_heartbeat < 600)", "absent(kstream_cluster_heartbeat)"),
        ("unless on (cluster) max by (cluster) (kstream_cluster_unreachable) == 1", ""),
        ("unless on (cluster, stream) kstream_frozen == 1", ""),
        ('kind="stalled"', 'kind="other"'),
        ("for: 2m", "for: 2h"),
    ],
)
def test_the_tests_of_the_rules_notice_a_defect(files: Path, rule: str, defect: str) -> None:
    sound = (files / "alerts.rules.yml").read_text()
    assert rule in sound
    (files / "alerts.rules.yml").write_text(sound.replace(rule, defect))
    done = promtool(files, "test", "rules", "alerts.test.yml")
    assert done.returncode == 1
    assert "FAILED" in done.stdout + done.stderr
