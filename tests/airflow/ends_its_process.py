"""A program, and not a library: who imports it ends."""

from __future__ import annotations

import sys

sys.exit("it is a program")
