"""Secrets of this host, looked up right before a submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.supervise.streams.folder.secrets import LocalSecrets, looked_up

VALUE = "zzz-very-secret"


def test_a_variable_and_a_file_are_found_and_a_plain_value_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS", VALUE)
    (tmp_path / "key").write_text(f"{VALUE}2\n")
    conf: dict[str, str | SecretRef] = {
        "a": SecretRef("env:ORDERS"),
        "b": SecretRef(f"file:{tmp_path / 'key'}"),
        "c": "plain",
    }
    assert looked_up(conf, LocalSecrets()) == {"a": VALUE, "b": f"{VALUE}2", "c": "plain"}


@pytest.mark.parametrize("kind", ["conn", "var"])
def test_what_airflow_keeps_is_refused_where_there_is_none(kind: str) -> None:
    with pytest.raises(InvalidInput, match=f"{kind}:orders is kept in Airflow, which is not at hand here; env:NAME"):
        LocalSecrets().find(SecretRef(f"{kind}:orders"))


def test_a_missing_secret_is_reported_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", "")
    (tmp_path / "binary").write_bytes(b"\xff\xfe" + VALUE.encode())
    for place in ("env:NO_SUCH", "env:EMPTY", "file:/no/such", f"file:{tmp_path}", f"file:{tmp_path / 'binary'}"):
        with pytest.raises(NotFound, match="look up a secret") as refused:
            LocalSecrets().find(SecretRef(place))
        assert place in str(refused.value)
        assert VALUE not in str(refused.value)


def test_nothing_that_the_kernel_shows_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/self/environ")
    (tmp_path / "folder").symlink_to("/dev")
    for path in ("/proc/self/environ", "/etc/../proc/self/cmdline", "/sys/kernel/notes", "/dev/stdin"):
        with pytest.raises(InvalidInput, match="nothing below /proc, /sys and /dev is a secret"):
            LocalSecrets().find(SecretRef(f"file:{path}"))
    for name in ("link", "folder/null"):
        with pytest.raises(InvalidInput, match="nothing below /proc, /sys and /dev is a secret"):
            LocalSecrets().find(SecretRef(f"file:{tmp_path / name}"))


def test_a_link_to_a_file_with_a_secret_is_followed(tmp_path: Path) -> None:
    (tmp_path / "..data").write_text(VALUE)
    (tmp_path / "key").symlink_to("..data")
    assert LocalSecrets().find(SecretRef(f"file:{tmp_path / 'key'}")) == VALUE


def test_one_that_is_used_twice_is_looked_up_once() -> None:
    asked: list[SecretRef] = []

    class Counting:
        def find(self, ref: SecretRef) -> str:
            asked.append(ref)
            return VALUE

    assert looked_up({"a": SecretRef("conn:x"), "b": SecretRef("conn:x")}, Counting()) == {"a": VALUE, "b": VALUE}
    assert asked == [SecretRef("conn:x")]
