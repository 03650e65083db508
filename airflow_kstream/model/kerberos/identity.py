"""The principal that talks to a server, and its short name by Hadoop's rules (hadoop.security.auth_to_local,
KerberosName).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:\[(?P<parts>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<lower>L)?)"
)

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


class CacheKind(StrEnum):
    """The kinds of caches that MIT Kerberos knows. Java reads only plain files."""

    FILE = "FILE"
    DIR = "DIR"
    MEMORY = "MEMORY"
    KCM = "KCM"
    KEYRING = "KEYRING"

    @property
    def java_reads(self) -> bool:
        """Return True if Java can read the cache. The caches of a DIR are files too: Java reads one by its path."""
        return self is CacheKind.FILE or self is CacheKind.DIR

    @property
    def ours(self) -> bool:
        """Return True if a process keeps the cache, itself or in files; others are a daemon's or the kernel's."""
        return self.java_reads or self is CacheKind.MEMORY


def is_principal(text: str) -> bool:
    """Return True if it can be a principal. A text that begins with - would be read as an option by other programs."""
    return bool(_PRINCIPAL.fullmatch(text)) and text.isprintable() and not text.startswith("-")


def split_principal(principal: str) -> tuple[str, str | None, str]:
    """Split a principal into primary, instance and realm. Raises InvalidInput: when it is not a principal."""
    match = _PRINCIPAL.fullmatch(principal)
    if match is None:
        raise InvalidInput(f"{principal!r} is not a principal; write primary[/instance]@REALM")
    return match["primary"], match["instance"], match["realm"]


def split_cache_name(name: str) -> tuple[CacheKind, str]:
    """Split "FILE:/path" into kind and rest; a path alone is a FILE. Raises InvalidInput: when the kind is unknown."""
    prefix, colon, rest = name.partition(":")
    if not colon or "/" in prefix:
        return CacheKind.FILE, name
    try:
        return CacheKind(prefix.upper()), rest
    except ValueError:
        known = ", ".join(CacheKind)
        raise InvalidInput(f"{name!r} is not a ticket cache: its kind is {prefix!r}; known kinds are {known}") from None


@dataclass(frozen=True)
class _Rule:
    parts: int
    format: str
    match: str | None
    replaced: str | None
    by: str
    everywhere: bool
    lower: bool

    def name_of(self, components: list[str], realm: str) -> str | None:
        """Return the short name; None if this rule is about other principals."""
        if len(components) != self.parts:
            return None
        base = re.sub(r"\$(\d)", lambda found: [realm, *components][int(found[1])], self.format)
        if self.match is not None and not re.fullmatch(self.match, base):
            return None
        if self.replaced is not None:
            base = re.sub(self.replaced, self.by.replace("$", "\\"), base, count=0 if self.everywhere else 1)
        return base.lower() if self.lower else base


def short_name(rules: str, principal: str, default_realm: str) -> str | None:
    """Return the user that the rules make of a principal; None if no rule is about it.

    Raises InvalidInput: when it is not a principal, or the rules can't be read.
    """
    primary, instance, realm = split_principal(principal)
    components = [primary, *([instance] if instance else [])]
    for rule in _read(rules):
        if rule is None:
            if realm == default_realm:
                return primary
        elif name := _applied(rule, components, realm):
            return name
    return None


def _applied(rule: _Rule, components: list[str], realm: str) -> str | None:
    try:
        return rule.name_of(components, realm)
    except (re.error, IndexError) as error:
        raise InvalidInput(f"hadoop.security.auth_to_local has a rule that can't be read: {error}") from None


def _read(rules: str) -> list[_Rule | None]:
    """Return the rules in their order; None stands for DEFAULT."""
    read: list[_Rule | None] = []
    at = 0
    while rules[at:].strip():
        found = _RULE.match(rules, at)
        if found is None:
            raise InvalidInput(
                f"hadoop.security.auth_to_local has a rule that can't be read: {rules[at:].strip()[:60]}"
            )
        read.append(None if found["default"] else _rule(found))
        at = found.end()
    return read


def _rule(found: re.Match[str]) -> _Rule:
    return _Rule(
        int(found["parts"]),
        found["format"],
        found["match"],
        found["from"],
        found["to"] or "",
        bool(found["all"]),
        bool(found["lower"]),
    )
