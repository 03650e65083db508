"""Commands whose servers are away: they say so."""

from __future__ import annotations

from pathlib import Path

from tests.commands import ran


def test_a_server_that_is_away_is_named_and_the_command_fails(cluster_file: Path) -> None:
    status = ran("streams", "status", "--cluster", str(cluster_file))
    assert status.code == 1
    assert "localhost:1" in status.err
