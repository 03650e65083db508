"""The minicluster's jars: each is what its hash in the repository says, or nothing of them is used."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from airflow_kstream import minicluster
from airflow_kstream.minicluster.jars import keep, pinned, require_pinned
from airflow_kstream.model.errors import MiniclusterError

POMS = sorted(Path(str(files(minicluster))).glob("poms/*.xml"))
CONTENTS = {"a-1.0.jar": b"a", "b-2.0.jar": b"b"}
PINNED = {name: sha256(content).hexdigest() for name, content in CONTENTS.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    # What is unpacked beside them.
    (tmp_path / "lib").mkdir()
    return tmp_path


@pytest.mark.parametrize("pom", [file.stem for file in POMS])
def test_each_pom_has_the_hashes_of_its_jars(pom: str) -> None:
    hashes = pinned(pom)
    assert hashes
    for name, digest in hashes.items():
        assert re.fullmatch(r"[\w.-]+\.jar", name)
        assert re.fullmatch(r"[0-9a-f]{64}", digest)


def test_jars_that_have_their_hashes_are_used(folder: Path) -> None:
    require_pinned(folder, PINNED, "hadoop")


def test_a_jar_that_somebody_changed_is_named(folder: Path) -> None:
    (folder / "b-2.0.jar").write_bytes(b"another")
    with pytest.raises(MiniclusterError, match=r"b-2\.0\.jar .*hadoop\.sha256") as refused:
        require_pinned(folder, PINNED, "hadoop")
    assert sha256(b"another").hexdigest() in str(refused.value)
    assert "a-1.0.jar" not in str(refused.value)


def test_a_jar_that_is_missing_and_one_that_nobody_listed_are_named(folder: Path) -> None:
    (folder / "a-1.0.jar").rename(folder / "c-3.0.jar")
    with pytest.raises(MiniclusterError, match=r"a-1\.0\.jar is missing; c-3\.0\.jar has the sha256 "):
        require_pinned(folder, PINNED, "hadoop")


def test_what_was_fetched_is_compared_before_it_is_kept(tmp_path: Path) -> None:
    fetched, kept = tmp_path / "fetched", tmp_path / "kms-1"
    fetched.mkdir()
    (fetched / "jul-to-slf4j-1.7.36.jar").write_bytes(b"changed")
    with pytest.raises(MiniclusterError, match=r"hadoop-kms-\S+ is missing; jul-to-slf4j-\S+ has the sha256"):
        keep(fetched, kept, "kms")
    assert not kept.exists()
