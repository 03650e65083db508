"""The watched tokens that need a hand: those that nobody can renew for much longer, and those that can't be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.policy.events.attention import Hand, at_most

TOKEN, UNREAD = "token", "unread"
_OF_A_JOB = (
    "restart it before then, or declare it as a stream; if it makes its own tokens from a keytab, watch tags instead "
    "of its user"
)
_OF_A_FILE = "get new tokens and replace the file: `kstream tokens show` lists them"
_UNREAD = "give the connection's principal the right to see it, or declare it no longer"


@dataclass(frozen=True)
class WatchedToken:
    """A token of `subject`, an application's id or a file, and the time after which nobody can renew it.

    `whose` tells people more about it. A file's tokens are needed for as long as the file is declared; an application
    that outlives the tokens of its launch makes its own, or has no use for any.
    """

    subject: str
    whose: str
    end: datetime
    in_file: bool = False


def token_hands(
    tokens: Iterable[WatchedToken], unread: Mapping[str, str], now: datetime, within: timedelta
) -> tuple[Hand, ...]:
    """Return the hands that are needed, the nearest end first; `unread` are subjects with the reasons.

    In a file with several tokens the first one to end counts.
    """
    first: dict[str, WatchedToken] = {}
    for token in sorted(tokens, key=lambda token: (token.end, token.subject)):
        first.setdefault(token.subject, token)
    due = [_hand(token, now) for token in first.values() if _is_due(token, now, within)]
    broken = [Hand(subject, UNREAD, why, _UNREAD, (subject,)) for subject, why in sorted(unread.items())]
    return at_most([*due, *broken], "`kstream tokens show` tells of each")


def _is_due(token: WatchedToken, now: datetime, within: timedelta) -> bool:
    left = token.end - now
    return left <= within and (token.in_file or left > timedelta())


def _hand(token: WatchedToken, now: datetime) -> Hand:
    left = token.end - now
    end, them = ("ends", "it") if token.in_file else ("end", "them")
    when = f"{end} in {format_duration(left)}" if left > timedelta() else f"ended {format_duration(-left)} ago"
    why = f"{token.whose} {when} ({token.end:%Y-%m-%d %H:%M:%S} UTC), and nobody can renew {them} beyond that"
    return Hand(token.subject, TOKEN, why, _OF_A_FILE if token.in_file else _OF_A_JOB, (token.subject,))
