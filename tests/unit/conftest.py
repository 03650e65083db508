"""What all unit tests share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache

import pytest
import typer.main

from airflow_kstream import cli
from tests.conftest import OWN


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Build each command of `kstream` once: it is built at each call, which a person makes once in a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "_app", cache(cli._app))
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


# Not for the session: the worker may go on to tests of another folder.
@pytest.fixture(scope="package", autouse=True)
def temporary_files_in_memory() -> Iterator[None]:
    """Keep off the disk what lives for a moment: units make and delete thousands of private folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(OWN.in_memory()))
        yield
