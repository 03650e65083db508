"""The pages' bundle is what its sources build. It is committed, so that an installation needs no Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.differences import first_difference
from tests.wheel import ROOT

SOURCES = ROOT / "airflow_kstream" / "plugin" / "ui"
BUNDLE = SOURCES.parent / "static" / "kstream.js"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, with what npm installs by the lock."""
    folder = tmp_path_factory.mktemp("pages") / "ui"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules"))
    run(folder, "npm", "ci")
    return folder


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_committed_bundle_is_what_its_sources_build(workshop: Path) -> None:
    run(workshop, "node", "build.mjs", "built.js")
    built = (workshop / "built.js").read_bytes()
    difference = first_difference(built, BUNDLE.read_bytes())
    assert not difference, f"{difference}; build it: cd airflow_kstream/plugin/ui && npm ci && npm run build"


def test_its_types_are_right(workshop: Path) -> None:
    run(workshop, "node", "node_modules/typescript/bin/tsc", "--noEmit")


def test_its_lock_names_no_registry() -> None:
    lock = (SOURCES / "package-lock.json").read_text()
    assert re.findall(r"https?:", lock) == []
    packages = json.loads(lock)["packages"]
    assert all("integrity" in package for name, package in packages.items() if name)


def test_the_bundle_leaves_react_to_airflows_page() -> None:
    bundle = BUNDLE.read_text()
    assert "React.createElement" in bundle
    assert len(bundle) < 150_000, "a bundle of this size has a library in it"
