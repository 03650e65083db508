"""Declarations of any bytes: they are read, or refused in one line that says where and what is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_kstream.clients.local.regular_files import decoded, read_text
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.yaml_text import read_mapping
from tests.unit.inputs.bad_bytes import BAD, GOOD

_ALL = [
    pytest.param(content, says, id=f"{kind}-{n}")
    for kind, rows in BAD.items()
    for n, (content, says) in enumerate(rows)
]


@pytest.mark.parametrize(("content", "says"), _ALL)
def test_what_is_no_declaration_is_refused_in_one_line(content: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        read_mapping(decoded(content))
    assert len(refusal.value.message) < 300
    assert refusal.value.message.isprintable()


@pytest.mark.parametrize("kind", GOOD)
def test_what_is_one_mapping_is_read_as_it_was_written(kind: str) -> None:
    content, expected = GOOD[kind]
    assert read_mapping(decoded(content)) == expected


def test_a_pipe_a_folder_and_a_device_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), tmp_path / "missing", tmp_path / "a\0b"):
        with pytest.raises(InvalidInput, match=r"not a regular file|can't be read"):
            read_text(path)


def test_a_link_that_leads_to_itself_is_refused_by_its_name(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(InvalidInput, match=r"loop\.yaml can't be read"):
        read_text(loop)


def test_the_file_is_named_in_what_is_wrong_with_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_bytes(b"name: \xff")
    with pytest.raises(InvalidInput, match=r"orders\.yaml: line 1 has the byte 0xff"):
        read_text(tmp_path / "orders.yaml")
