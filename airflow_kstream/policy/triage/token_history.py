"""The lives of delegation tokens from the lines of DelegationTokenRenewer and AbstractDelegationTokenSecretManager.

Hadoop 2 names a token by its number and owner, Hadoop 3 with all dates (HDFS-9732). A renewal that gives no later end
than the one before shows the max-lifetime.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

from airflow_kstream.model.kerberos.tokens import TokenEvent, TokenEventKind, TokenHistory
from airflow_kstream.model.log_scan.sections import Hit, LinePattern
from airflow_kstream.model.logs.log_line import head_of, zone_of_offset
from airflow_kstream.policy.triage.sources import ScannedLog

# More than a log has: a day's renewals of ten thousand applications.
_MOST = 200_000
_KINDS = {
    TokenEventKind.ISSUED: r"Creating password for identifier: ",
    TokenEventKind.SUBMITTED: r"found existing hdfs token ",
    TokenEventKind.RENEWED: r"Renewed delegation-token= ?\[",
    TokenEventKind.FAILED: r"Exception renewing token",
    TokenEventKind.REPLACED: r"is expiring, request new token",
    TokenEventKind.REMOVED: r"removing failed delegation token|Removing expired token |Removed expiring token",
}
_LIMIT = LinePattern("max date", r"max expiration date: ", _MOST, 0)
TOKEN_LINES = (*(LinePattern(kind.value, regex, _MOST, 0) for kind, regex in _KINDS.items()), _LIMIT)
_LONG = re.compile(
    r"(?P<kind>[\w-]+) owner=(?P<owner>[^,]*), renewer=[^,]*, realUser=[^,]*, issueDate=(?P<issued>\d+), "
    r"maxDate=(?P<limit>\d+), sequenceNumber=(?P<number>\d+)"
)
_SHORT = re.compile(r"\((?P<kind>[\w -]+) token (?P<number>\d+) for (?P<owner>[^)]+)\)")
_SERVICE = re.compile(r"Service: (?P<service>[^,]+)|;t=(?P<removed>\S+)")
_UNTIL = re.compile(r";exp=(\d+)")
_APPLICATION = re.compile(r"application_\d+_\d+")
_LIMIT_DATE = re.compile(r"max expiration date: (?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}(?P<offset>[+-]\d{4}))")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of a moment in milliseconds: it ends in 2286, which every zone has.
_DIGITS = 13


@dataclass
class _Life:
    kind: str
    owner: str
    number: int
    service: str = ""
    applications: dict[str, None] = field(default_factory=dict)
    issued: datetime | None = None
    limit: datetime | None = None
    events: list[TokenEvent] = field(default_factory=list)


def token_histories(
    logs: Iterable[ScannedLog], application: str | None = None, zone: tzinfo | None = None
) -> tuple[TokenHistory, ...]:
    """Return the tokens that the logs tell of, those of one application or all, in the order of their first events.

    `zone` is that of logs that don't say theirs; None is the one in which they write a token's max-lifetime, else UTC.
    """
    lives: dict[tuple[str, str, int], _Life] = {}
    for log in logs:
        hits = sorted(_hits(log), key=lambda found: found[1].number)
        own = zone or _zone([hit for _, hit in hits]) or UTC
        for kind, hit in hits:
            _note(lives, kind, hit, log.name, own)
    chosen = [life for life in lives.values() if application is None or application in life.applications]
    return tuple(_history(life) for life in chosen)


def _hits(log: ScannedLog) -> Iterator[tuple[str, Hit]]:
    for section in log.sections:
        for name, found in section.found.items():
            yield from ((name, hit) for hit in found.kept)


def _note(lives: dict[tuple[str, str, int], _Life], name: str, hit: Hit, file: str, zone: tzinfo) -> None:
    life = _life(lives, hit.line)
    if life is None:
        return
    life.applications |= dict.fromkeys(_APPLICATION.findall(hit.line))
    if name == _LIMIT.name:
        life.limit = _limit_in(hit.line) or life.limit
        return
    head = head_of(hit.head or hit.line, zone)
    found = _UNTIL.search(hit.line)
    until = _moment(found[1]) if found else None
    # In the zone of the log, so that a person can compare the two.
    until = until.astimezone(zone) if until else None
    life.events.append(TokenEvent(TokenEventKind(name), head.when if head else None, file, hit.number, until))


def _life(lives: dict[tuple[str, str, int], _Life], line: str) -> _Life | None:
    """Return the life of the token that the line names; a removal names its service and application alone."""
    service = _SERVICE.search(line)
    named = _LONG.search(line) or _SHORT.search(line)
    if named is None:
        removed = service["removed"] if service else None
        ours = set(_APPLICATION.findall(line))
        return next(
            (life for life in lives.values() if life.service == removed and ours & set(life.applications)), None
        )
    life = lives.setdefault(
        (named["kind"], named["owner"], int(named["number"])),
        _Life(named["kind"], named["owner"], int(named["number"])),
    )
    dates = named.groupdict()
    life.issued = life.issued or _moment(dates.get("issued"))
    life.limit = life.limit or _moment(dates.get("limit"))
    life.service = life.service or (service["service"] if service and service["service"] else "")
    return life


def _history(life: _Life) -> TokenHistory:
    events = tuple(_with_shares(life.events))
    ends = [event.until for event in events if event.until]
    at_limit = ends[-1] if len(ends) > 1 and ends[-1] == ends[-2] else None
    return TokenHistory(
        life.kind, life.service, life.owner, life.number, tuple(life.applications), life.issued,
        life.limit or at_limit, events,
    )  # fmt: skip


def _with_shares(events: Sequence[TokenEvent]) -> Iterator[TokenEvent]:
    last: TokenEvent | None = None
    for event in events:
        if event.kind is not TokenEventKind.RENEWED:
            yield event
            continue
        yield replace(event, share=_share(last, event))
        last = event


def _share(last: TokenEvent | None, event: TokenEvent) -> float | None:
    if last is None or not (last.when and last.until and event.when) or last.until <= last.when:
        return None
    return (event.when - last.when) / (last.until - last.when)


def _limit_in(line: str) -> datetime | None:
    found = _LIMIT_DATE.search(line)
    head = head_of(found["moment"]) if found else None
    return head.when if head else None


def _zone(hits: Iterable[Hit]) -> tzinfo | None:
    found = next((found for hit in hits if (found := _LIMIT_DATE.search(hit.line))), None)
    return zone_of_offset(found["offset"]) if found else None


def _moment(milliseconds: str | None) -> datetime | None:
    if not milliseconds or len(milliseconds) > _DIGITS:
        return None
    return _EPOCH + timedelta(milliseconds=int(milliseconds))
