from __future__ import annotations

from tests.live.fixtures import airflow, live

__all__ = ["airflow", "live"]
