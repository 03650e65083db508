"""What the programs of a run leave in the machine's temporary folder, although each of them is given one of its own."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

# Other programs of the machine write there, too: these are names of Hadoop's stores, of the scratch of Jetty and Spark,
# and of libraries that jars unpack.
_KINDS = (
    *("hadoop-*", "jetty-*", "Jetty_*", "spark-*", "blockmgr-*", "jansi-*", "libleveldbjni-*", "libzstd-jni-*"),
    *("libsnappy*", "snappy-*"),
)
_RECORD = "machine-tmp.json"


def note_what_is_there(run: Path) -> None:
    """Keep in the run's folder what the machine's temporary folder holds before the run."""
    machine = Path(tempfile.gettempdir())
    (run / _RECORD).write_text(json.dumps({"machine": str(machine), "before": _moments(machine)}))


def what_was_left(run: Path) -> list[str]:
    """Return what the run made or changed there; of folders, also what lies right in them."""
    record = json.loads((run / _RECORD).read_text())
    now = _moments(Path(record["machine"]))
    return sorted(path for path, moment in now.items() if record["before"].get(path) != moment)


def _moments(machine: Path) -> dict[str, int]:
    found = [path for kind in _KINDS for path in machine.glob(kind)]
    below = [path for folder in found if folder.is_dir() for path in folder.glob("*")]
    moments: dict[str, int] = {}
    for path in (*found, *below):
        # Another program may delete its own at any moment.
        with suppress(FileNotFoundError):
            moments[str(path)] = path.lstat().st_mtime_ns
    return moments
