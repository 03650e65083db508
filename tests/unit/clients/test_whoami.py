"""The user that a record names, including in a container with a random uid."""

from __future__ import annotations

import os
import pwd
import socket

import pytest

from airflow_kstream.clients.local.whoami import user_at_host


def test_a_user_that_has_no_name_is_its_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert user_at_host() == f"{os.getuid()}@{socket.gethostname()}"


def test_a_user_is_named_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")
    assert user_at_host() == f"alice@{socket.gethostname()}"
