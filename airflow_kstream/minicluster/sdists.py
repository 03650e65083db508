"""Jars that a registry serves in a source distribution of Python's alone, as those of Flink."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from airflow_kstream.model.errors import MiniclusterError


def copy_from_sdist(requirements: Path, names: Collection[str], destination: Path) -> None:
    """Download the one distribution that the file of requirements pins by its hash; copy the files of these names.

    pip compares the hash before it asks the distribution's own program for metadata; nothing is built or installed.
    Raises MiniclusterError: when pip does not bring it.
    """
    destination.mkdir()
    download = destination.with_name("download")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    only = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes"]
    done = subprocess.run(
        [*pip, *only, "--requirement", str(requirements), "--dest", str(download)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line] or [done.stderr.strip()[-500:]]
        raise MiniclusterError(f"pip could not fetch {requirements.name}: {said[0]}")
    (archive,) = download.iterdir()
    _copy(archive, names, destination)
    shutil.rmtree(download)


def _copy(archive: Path, names: Collection[str], destination: Path) -> None:
    with tarfile.open(archive) as members:
        for member in members:
            name = PurePosixPath(member.name).name
            source = members.extractfile(member) if member.isfile() and name in names else None
            if source:
                with (destination / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
