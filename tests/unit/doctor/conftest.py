from __future__ import annotations

from tests.simulated.fixtures import life
from tests.simulated.served_commands import served

__all__ = ["life", "served"]
