"""Secrets that a stream refers to, by where they are kept. Of this run alone, so that whatever holds one got it now."""

from __future__ import annotations

from secrets import token_hex

PLANTED = {kind: f"planted{token_hex(12)}" for kind in ("conn", "var", "env")}
