"""The principal that talks to a server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_kstream.model.errors import InvalidInput

_PRINCIPAL = re.compile(r"(?P<primary>[^/@\s]+)(?:/(?P<instance>[^/@\s]+))?@(?P<realm>[^/@\s]+)")


@dataclass(frozen=True)
class Identity:
    """A principal with the file that proves it: a keytab or, without one, a ticket cache.

    `do_as` is the user that this principal impersonates on the servers (`hadoop.proxyuser.*`), None for none.
    """

    principal: str
    keytab: str | None = None
    ticket_cache: str | None = None
    do_as: str | None = None

    def __str__(self) -> str:
        return f"{self.principal} for {self.do_as}" if self.do_as else self.principal


def is_principal(text: str) -> bool:
    """Return True if it can be a principal. A text that begins with - would be read as an option by other programs."""
    return bool(_PRINCIPAL.fullmatch(text)) and text.isprintable() and not text.startswith("-")


def split_principal(principal: str) -> tuple[str, str | None, str]:
    """Split a principal into primary, instance and realm. Raises InvalidInput: when it is not a principal."""
    match = _PRINCIPAL.fullmatch(principal)
    if match is None:
        raise InvalidInput(f"{principal!r} is not a principal; write primary[/instance]@REALM")
    return match["primary"], match["instance"], match["realm"]
