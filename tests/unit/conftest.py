"""What all unit tests share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import typer.main


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Build the commands of `kstream` once: Typer does it at each call, which a person makes once in a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield
