"""The spread of one moment over a thousand generations, the same for every program that computes it."""

from __future__ import annotations

import hashlib


def spread(nonce: str) -> float:
    """Return a number in [0, 1) for the generation whose claim has this nonce."""
    return int.from_bytes(hashlib.sha256(nonce.encode()).digest()[:4], "big") / 2**32
