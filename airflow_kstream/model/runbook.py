"""Where docs/runbook.md has the way out of an event or an alert: each has a heading of its own there.

    heading("checkpoint_changed") == heading("KstreamCheckpointChanged") == "Checkpoint changed"

An alert and the event that it is made of share one.
"""

from __future__ import annotations

import re

_PAGE = "runbook.html"
_ALERTS = "Kstream"
_WORD = re.compile(r"[A-Z][a-z]*|[a-z]+")


def heading(name: str) -> str:
    """Return the words of an event's kind, or of an alert's name, as a heading."""
    return " ".join(word.lower() for word in _WORD.findall(name.removeprefix(_ALERTS))).capitalize()


def anchor(name: str) -> str:
    """Return the anchor of the heading, as GitHub and the site make it."""
    return heading(name).lower().replace(" ", "-")


def link(docs_url: str, name: str) -> str:
    """Return the address of the heading on the site at `docs_url`; empty where nobody serves one."""
    return f"{docs_url.rstrip('/')}/{_PAGE}#{anchor(name)}" if docs_url else ""
