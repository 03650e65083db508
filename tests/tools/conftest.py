from __future__ import annotations

from tests.live.spark_session import spark

__all__ = ["spark"]
