"""The commands that a recovery's scheduler gives to its executor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class CheckHealth:
    """Command to read the cluster's health."""


@dataclass(frozen=True)
class JudgeMore:
    """Command to judge at most this many further files: those that may be recovered are requested next."""

    most: int


@dataclass(frozen=True)
class ReadStates:
    """Command to read these files' states: recovery will be requested for some of them next."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class RequestRecovery:
    """Command to ask the NameNode to recover these leases now."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Poll:
    """Command to check whether these files are closed."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """Command to read the final states of these files, which are closed or past their deadline."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class WaitUntil:
    """Command to wait: nothing is due before `until`, counted from the run's start."""

    until: timedelta


Command = CheckHealth | JudgeMore | ReadStates | RequestRecovery | Poll | Review | WaitUntil
