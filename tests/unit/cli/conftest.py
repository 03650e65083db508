from __future__ import annotations

from pathlib import Path

import pytest
import yaml

# Nothing listens on port 1.
FIELDS = {
    "principal": "watcher@EXAMPLE.COM",
    "state_dir": "/kstream",
    "keytab_path": "/nope",
    "resourcemanagers": "http://localhost:1",
    "namenodes": "http://localhost:1",
    "default_fs": "hdfs://localhost:1",
}


@pytest.fixture
def cluster_file(tmp_path: Path) -> Path:
    """A cluster whose servers are all away."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(FIELDS))
    return file
