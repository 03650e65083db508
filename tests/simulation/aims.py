"""Which request of a history is disturbed: each happening that names one is aimed at it, and hits once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tests.simulation.plans import Happening


class Asking(Protocol):
    """Whoever sends requests: a program of ours or a driver."""

    @property
    def name(self) -> str: ...
    @property
    def writes(self) -> int: ...
    @property
    def since_write(self) -> int: ...


class Aims:
    """The happenings that wait for their request, with how many requests each has counted so far."""

    def __init__(self, happenings: Iterable[Happening]) -> None:
        self._counted = {happening: 0 for happening in happenings if happening.disturbs_a_request}

    def at(self, program: Asking, words: str, now: float) -> Happening | None:
        """Return the happening that is aimed at this request."""
        for happening in list(self._counted):
            if happening.who == program.name and self._hits(happening, program, words, now):
                del self._counted[happening]
                return happening
        return None

    def _hits(self, happening: Happening, program: Asking, words: str, now: float) -> bool:
        if happening.write:
            return (program.writes, program.since_write) == (happening.write, happening.after)
        if happening.behind:
            return self._count(happening, begun=happening.behind in words) == happening.after + 1
        return self._count(happening, begun=now >= happening.at) == happening.request

    def _count(self, happening: Happening, *, begun: bool) -> int:
        """Count this request, once one was counted or the count begins with this one."""
        if self._counted[happening] or begun:
            self._counted[happening] += 1
        return self._counted[happening]
