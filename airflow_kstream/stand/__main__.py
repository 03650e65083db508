"""`python -m airflow_kstream.stand`."""

from __future__ import annotations

import sys

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.stand.cli import app

if __name__ == "__main__":
    try:
        app(prog_name="python -m airflow_kstream.stand")
    except KstreamError as error:
        sys.exit(str(error))
