"""`kstream` in this process, on a minicluster."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from airflow_kstream.minicluster import Minicluster
from tests.commands import Ran, ran
from tests.live.streams import fields

__all__ = ["Ran", "cluster_file", "ran"]


def cluster_file(minicluster: Minicluster, who: str, folder: Path, **more: Any) -> Path:
    """Write and return the file for `--cluster`: the minicluster, as one of its principals, and more fields."""
    file, said = folder / "minicluster.yaml", asdict(fields(minicluster, who, **more))
    file.write_text(yaml.safe_dump({name: value for name, value in said.items() if value}))
    return file
