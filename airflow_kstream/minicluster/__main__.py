"""`python -m airflow_kstream.minicluster`."""

from __future__ import annotations

import sys

from airflow_kstream.minicluster.cli import app
from airflow_kstream.model.errors import KstreamError

if __name__ == "__main__":
    try:
        app(prog_name="python -m airflow_kstream.minicluster")
    except KstreamError as error:
        sys.exit(str(error))
