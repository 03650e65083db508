"""Ports that processes choose at the same moment, long before a daemon listens on them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from airflow_kstream.minicluster import ports
from airflow_kstream.minicluster.ports import free_ports

FEW = range(19_000, 19_020)
NAMES = [f"daemon-{number}" for number in range(len(FEW) // 2)]
CHOOSE = f"""
import json, sys
from airflow_kstream.minicluster import ports
ports._PORTS = {FEW}
print(json.dumps(ports.free_ports({NAMES})), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of twelve thousand ports two choices would hardly ever share one, whatever the program does.
    monkeypatch.setattr(ports, "_PORTS", FEW)


def test_two_processes_that_choose_ports_share_none_until_one_ends() -> None:
    """Both start a cluster: nothing listens yet where the other one's daemons will."""
    with subprocess.Popen(
        [sys.executable, "-c", CHOOSE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = set(json.loads(other.stdout.readline()).values())
        assert len(theirs) == len(NAMES)
        ours = set(free_ports(NAMES).values())
        assert ours & theirs == set()
        other.communicate()
    assert set(free_ports(NAMES).values()) == theirs
