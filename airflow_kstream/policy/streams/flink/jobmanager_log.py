"""The words of a JobManager's log: its rounds of new tokens, the workers that YARN refused it, and its last error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from textwrap import shorten

from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.flink_conf import flink_duration
from airflow_kstream.model.streams.horizon import TokenRound

# A record begins with a time; Flink's own layout has milliseconds after a comma.
_RECORD = re.compile(
    r"^(?P<at>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[,.](?P<millis>\d{3}))?\S*\s+[A-Z]+\s", re.MULTILINE
)
# The job's own code writes this log, too: none of these takes more steps than the log has characters, some times over.
# DefaultDelegationTokenManager. Without a renewal date no further round is scheduled.
_NEXT = re.compile(r"Tokens update task started with (?P<delay>\d+ ?[a-z]*) delay")
_FAILED = re.compile(r"Failed to update tokens, will try again in (?P<delay>\d+ ?[a-z]*)")
_NO_MORE = "Tokens update task not started because"
# DFSClient: the NameNode's time of a token that a round has just made, beside the host's own, whose zone nobody tells.
_CREATED, _ISSUED = "Created token for ", re.compile(r" issueDate=(?P<millis>\d{12,13}),")
_ZONES = timedelta(minutes=15)
# In which a host's clock may be, however wrong it is.
_YEARS = range(1970, 3000)
# ActiveResourceManager and YarnResourceManagerDriver. A worker's name has its node in brackets.
_WORKER = re.compile(r"Worker (?P<id>[^\s(]+)(?:\(\S*)? is (?P<what>registered|terminated\. Diagnostics:)")
_ASKS, _GETS = re.compile(r"Requesting new (?:worker|TaskExecutor)"), re.compile(r"Received [1-9]\d* containers?\.")
_STACK = re.compile(r"^[ \t]*(?:at |\.\.\. \d+ more).*$", re.MULTILINE)
# Dispatcher, ExecutionGraph, ApplicationDispatcherBootstrap and ClusterEntrypoint. A restart inside says RESTARTING;
# what REST could not answer is an ERROR, too, of a job that runs on.
_ENDS_IT = re.compile(
    r"reached terminal state FAILED|switched from state \w+ to FAIL|Application failed unexpectedly"
    r"|Could not (?:start cluster entrypoint|create application program)|Fatal error occurred"
)
_IN_A_THREAD = re.compile(r"Exception in thread \"[^\"]*\" (?P<trace>.*)", re.DOTALL)
_ERROR = re.compile(r"(?<![\w$.])(?P<error>(?:[\w$]+\.)+[\w$]*(?:Exception|Error|InvalidToken|Throwable)\b[^\n]*)")
_NO_CAUSE = re.compile(r"java\.lang\.InterruptedException|java\.util\.concurrent\.RejectedExecutionException")
_SHOWN = 500
_LAST_ERROR = 400


@dataclass(frozen=True)
class Refusal:
    """Why no TaskManager works: YARN's words on the last one that ended, or `waits` for a container of YARN's.

    `unread` is why the log that tells can't be read: no word of YARN's.
    """

    words: str = ""
    waits: bool = False
    unread: str = ""


@dataclass(frozen=True)
class _Record:
    at: datetime
    text: str


def token_rounds(log: str) -> tuple[TokenRound, ...]:
    """Return the rounds that the log tells, oldest first; none where it dates no token, so that its zone is not known.

    A round that failed is one that brought nothing: the tokens before it end when they ended.
    """
    rounds: list[TokenRound] = []
    zone = _zone(log)
    for record in () if zone is None else (replace(each, at=each.at - zone) for each in _records(log)):
        if found := _NEXT.search(record.text):
            delay = flink_duration(found["delay"]) or timedelta()
            rounds.append(TokenRound(record.at, record.at + delay / USUAL_RENEWAL_RATIO, delay))
        elif found := _FAILED.search(record.text):
            ends = rounds[-1].tokens_end if rounds else None
            delay = flink_duration(found["delay"]) or timedelta()
            rounds.append(TokenRound(record.at, ends or record.at + delay, delay))
        elif _NO_MORE in record.text:
            rounds.append(TokenRound(record.at, None, timedelta.max))
    return tuple(rounds)


def _zone(log: str) -> timedelta | None:
    """Return how far the log's zone is ahead of UTC: both clocks differ by less than Kerberos' five minutes."""
    created = (record for record in _records(log) if _CREATED in record.text)
    dated = [(record.at, found) for record in created if (found := _ISSUED.search(record.text))]
    if not dated:
        return None
    at, found = dated[-1]
    return round((at - datetime.fromtimestamp(int(found["millis"]) / 1000, UTC)) / _ZONES) * _ZONES


def last_refusal(log: str) -> Refusal:
    """Return why no worker comes. The end of one that had registered says nothing of those that are to follow."""
    registered: set[str] = set()
    refused, ended, asked, given = "", "", -1, -1
    for number, record in enumerate(_records(log)):
        if _ASKS.search(record.text):
            asked = number
        elif _GETS.search(record.text):
            given = number
        elif found := _WORKER.search(record.text):
            words = record.text[found.end() :]
            if found["what"] == "registered":
                registered.add(found["id"])
                refused = ended = ""
            elif found["id"] in registered:
                ended, refused = words, ""
            else:
                refused = words
    if refused and given >= 0:
        return Refusal(_short(refused))
    return Refusal(_short(refused or ended), waits=asked > given)


def last_error(logs: Mapping[str, str], log: str) -> str:
    """Return the innermost cause of what ended the job or its JobManager, as the file `log` tells; else the exception
    that ended a thread of its JVM; empty if there is none."""
    errors = [_innermost(record.text) for record in _records(logs.get(log, "")) if _ENDS_IT.search(record.text)]
    if not any(errors):
        errors = [_innermost(found["trace"]) for found in map(_IN_A_THREAD.search, logs.values()) if found]
    return shorten(next(filter(None, reversed(errors)), ""), _LAST_ERROR, placeholder=" ...")


def _innermost(text: str) -> str:
    # A frame may be of a method that throws, and is named so.
    errors = _ERROR.finditer(_STACK.sub("", text))
    found = [match["error"] for match in errors if not _NO_CAUSE.match(match["error"])]
    return found[-1] if found else ""


def _records(log: str) -> Iterator[_Record]:
    begins = [(begun, at) for begun in _RECORD.finditer(log) if (at := _moment(begun))]
    for number, (begun, at) in enumerate(begins):
        end = begins[number + 1][0].start() if number + 1 < len(begins) else len(log)
        yield _Record(at, log[begun.end() : end])


def _moment(begun: re.Match[str]) -> datetime | None:
    """Return when a record was written; None for what only looks like a time, as MySQL's zero date in a job's row."""
    try:
        at = datetime.fromisoformat(begun["at"]).replace(tzinfo=UTC)
    except ValueError:
        return None
    return at + timedelta(milliseconds=int(begun["millis"] or 0)) if at.year in _YEARS else None


def _short(words: str) -> str:
    return shorten(without_secrets(_STACK.sub("", words)), _SHOWN, placeholder="…")
