from __future__ import annotations

from tests.simulated.fixtures import life

__all__ = ["life"]
