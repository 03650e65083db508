"""What all unit tests share."""

from __future__ import annotations

import pwd
from collections.abc import Iterator
from functools import cache

import pytest
import typer.main

from airflow_kstream import cli
from tests.conftest import OWN
from tests.temporary import temporary_files_in


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Build each command of `kstream` once: it is built at each call, which a person makes once in a process."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((cli, "_app"), (typer.main, "get_command")):
            # It saves time alone: most of what a unit of the command line takes goes into it.
            patch.setattr(module, name, cache(getattr(module, name)))
        yield


# Not for the session: the worker may go on to tests of another folder.
@pytest.fixture(scope="package", autouse=True)
def temporary_files_in_memory() -> Iterator[None]:
    """Keep off the disk what lives for a moment: units make and delete thousands of private folders."""
    with temporary_files_in(OWN.in_memory()):
        yield


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without an entry in passwd, as in a container with a random uid."""

    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    # Who runs the tests has an entry there, and may not become somebody else.
    monkeypatch.setattr(pwd, "getpwuid", nobody)
