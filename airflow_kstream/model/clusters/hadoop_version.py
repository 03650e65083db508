"""Versions of Hadoop, and whether a fix is in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)")
_BEFORE_RELEASE = re.compile(r"-(alpha|beta|rc|snapshot)", re.IGNORECASE)

# The first release of each branch that has a fix. A branch that is not named has it if it is above all of them: so each
# branch between them that has it must be named.
Fixed = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class HadoopVersion:
    """A version as a server or a jar's name tells it: `3.4.3`, or a distribution's own such as `2.6.0-cdh5.16.2`."""

    text: str

    @property
    def numbers(self) -> tuple[int, int, int] | None:
        match = _VERSION.match(self.text)
        return (int(match[1]), int(match[2]), int(match[3])) if match else None

    @property
    def of_a_distribution(self) -> bool:
        """Return whether somebody else than Apache built it: they carry fixes back, and their numbers don't tell."""
        match = _VERSION.match(self.text)
        return match is None or bool(match[4])

    def has(self, fixed: Fixed) -> bool | None:
        """Return whether it has the fix; None if its number doesn't tell, as that of a distribution below the fix."""
        numbers = self.numbers
        if numbers is None or _BEFORE_RELEASE.search(self.text):
            return None
        branch, patch = numbers[:2], numbers[2]
        has = patch >= fixed[branch] if branch in fixed else branch > max(fixed)
        return None if not has and self.of_a_distribution else has

    def __str__(self) -> str:
        return self.text
