"""What whoever carries out a recovery can be told to do next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class CheckHealth:
    """Ask how the cluster is."""


@dataclass(frozen=True)
class ReadStates:
    """Read these files' states: some of them are about to be asked for."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class RequestRecovery:
    """Ask the NameNode to recover these leases, at once."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Poll:
    """See whether these are closed."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """Read the states of these, which are closed or past their deadline."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class WaitUntil:
    """Nothing is due before `until`, counted from the run's beginning."""

    until: timedelta


Command = CheckHealth | ReadStates | RequestRecovery | Poll | Review | WaitUntil
