"""The one error for what all servers of a pair answered."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from airflow_kstream.model.errors import KstreamError, NotFound, Unavailable


class Context(TypedDict):
    """The arguments that every error has: the attempt, its server and its principal."""

    tried: str
    server: str
    principal: str


def kind_of_all(errors: Collection[KstreamError]) -> type[KstreamError]:
    """Return the kind of error that several servers' errors are together.

    It is the lasting refusal that all of them answer, else Unavailable: another answer of one of them may pass. A
    NotFound here is about the server's address; callers would take it for the lack of an application or a file.
    """
    kinds = {type(error) for error in errors}
    lasting = len(kinds) == 1 and NotFound not in kinds and not any(error.retryable for error in errors)
    return kinds.pop() if lasting else Unavailable


def words_of_all(errors: Collection[KstreamError]) -> str:
    """Name each server with its words, and servers that say the same with these words once."""
    said: dict[str, list[str]] = {}
    for error in errors:
        said.setdefault(error.message.rstrip("."), []).append(error.server)
    return "; ".join(f"{' and '.join(servers)}: {words}" for words, servers in said.items())
