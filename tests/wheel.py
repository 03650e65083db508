"""The wheel of this checkout, and the versions that it is tested with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def built_wheel(folder: Path) -> Path:
    """Build it into the folder and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def locked_constraints() -> str:
    """Return the locked versions as constraints without hashes: with hashes, pip would ask for the wheel's own, too."""
    lines = [line.rstrip("\\ ") for line in (ROOT / "requirements.lock").read_text().splitlines()]
    return "\n".join(line for line in lines if "==" in line and not line.startswith(" "))
