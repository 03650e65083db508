"""`python -m airflow_kstream.cli`: the same as `kstream`."""

from __future__ import annotations

from airflow_kstream.cli import main

main()
