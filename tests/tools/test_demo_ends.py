"""A demonstration that is interrupted leaves nothing behind on the machine."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest


@pytest.mark.parametrize(("number", "moment"), [(signal.SIGTERM, "starting Airflow"), (signal.SIGINT, "a kerberized")])
def test_a_demonstration_that_is_interrupted_leaves_no_process(
    number: signal.Signals, moment: str, tmp_path: Path
) -> None:
    """It is interrupted while Airflow starts on a running cluster, and while the cluster itself is starting."""
    kstream = Path(sys.executable).with_name("kstream")
    with subprocess.Popen(
        [kstream, "demo", "--root", str(tmp_path / "demo")], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        seen = next(line for line in demo.stdout if moment in line)
        demo.send_signal(number)
        rest = demo.stdout.read()
    assert seen
    assert demo.returncode == 128 + number, rest
    assert left_behind(tmp_path) == []


def left_behind(root: Path) -> list[str]:
    """Return command lines that contain this folder."""
    lines = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if str(root) in line]
