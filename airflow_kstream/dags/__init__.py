"""The shipped DAGs: one module for each kind of declaration; `stubs` has the files that Airflow reads."""

from pathlib import Path

STUBS = Path(__file__).parent / "stubs"
