"""The jar for Flink's JobManager, built anew."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.flink_jar import JAR, build

pytestmark = pytest.mark.compatibility


def test_its_sources_give_the_classes_that_are_checked_in(tmp_path: Path) -> None:
    with ZipFile(build(tmp_path / "anew.jar")) as anew, ZipFile(JAR) as kept:
        differ = [name for name in anew.namelist() if anew.read(name) != kept.read(name)]
        assert anew.namelist() == kept.namelist()
        assert differ == []
