"""Commands whose servers are away: they say so, and cannot control the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import ran


@pytest.mark.parametrize("word", [(), ("\x1b[2J",)])
def test_a_server_that_is_away_is_named_and_the_command_fails(cluster_file: Path, word: tuple[str, ...]) -> None:
    status = ran("streams", "status", "--cluster", str(cluster_file), *word)
    assert status.code == 1
    assert "localhost:1" in status.err
    assert "\x1b" not in status.out + status.err
