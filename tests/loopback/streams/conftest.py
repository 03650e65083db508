from __future__ import annotations

from tests.unit.streams.conftest import life

__all__ = ["life"]
