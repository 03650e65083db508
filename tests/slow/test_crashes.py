"""Streams past several lives of their tokens, while Airflow is crashed at the worst moments: the demonstration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.crashes, pytest.mark.timeout(3600)]


def test_every_promise_is_kept_while_airflow_crashes(tmp_path: Path) -> None:
    kstream = Path(sys.executable).with_name("kstream")
    command = [str(kstream), "demo", "--once", "--with-crashes", "--root", str(tmp_path / "demo")]
    ended = subprocess.run(command, check=False, timeout=3000)
    assert ended.returncode == 0
