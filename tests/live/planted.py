"""Secrets that a stream refers to, by the place where they are kept. Each run makes new ones: a find is this run's."""

from __future__ import annotations

from secrets import token_hex

PLANTED = {kind: f"planted{token_hex(12)}" for kind in ("conn", "var", "env")}
