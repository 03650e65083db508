"""The files that the triage job takes along to the cluster."""

from __future__ import annotations

import json
from dataclasses import astuple
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import airflow_kstream
from airflow_kstream.model.logs.log_line import HEAD
from airflow_kstream.model.logs.signature import Catalogue
from airflow_kstream.policy.triage.sources import TITLES
from airflow_kstream.supervise.triage.scan import patterns_of

_PACKAGE = Path(airflow_kstream.__file__).parent
# Where a container finds the archive; jobs/log_parts.py looks there.
ENGINE_FOLDER = "kstream_engine"
JOB = _PACKAGE / "jobs" / "triage.py"
_MODULES = tuple(JOB.with_name(name) for name in ("log_parts.py", "log_reads.py"))
_SCANNER = _PACKAGE / "model" / "log_scan"


def write_modules(folder: Path) -> Path:
    """Write the modules beside the job into one archive for --py-files."""
    archive = folder / "triage.zip"
    with ZipFile(archive, "w") as modules:
        for module in _MODULES:
            modules.write(module, module.name)
        for file in sorted(_SCANNER.glob("*.py")):
            modules.write(file, f"{_SCANNER.name}/{file.name}")
    return archive


def write_engine(folder: Path) -> Path | None:
    """Write Hyperscan, as it is installed here, into an archive for --archives; None where it is not.

    A worker of another version of Python can't load it, and uses Python's own engine.
    """
    found = find_spec("hyperscan")
    if found is None or not found.submodule_search_locations:
        return None
    package = Path(found.submodule_search_locations[0])
    archive = folder / "engine.zip"
    with ZipFile(archive, "w") as engine:
        for file in package.iterdir():
            if file.suffix in {".py", ".so"}:
                engine.write(file, f"{package.name}/{file.name}")
    return archive


def settings_of(catalogue: Catalogue) -> str:
    """Return what the job looks for, as JSON."""
    patterns = [astuple(each) for each in patterns_of(catalogue)]
    return json.dumps({"patterns": patterns, "heads": HEAD, "titles": [title.name for title in TITLES]})
