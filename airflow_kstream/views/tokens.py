"""Tokens for people, without their secrets: as tables, and the life of one drawn on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.table import Table
from rich.text import Text

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.kerberos.credentials_file import SecretKey
from airflow_kstream.model.kerberos.tokens import (
    AttemptToken,
    DelegationToken,
    Identifier,
    KafkaToken,
    Token,
    TokenEvent,
    TokenEventKind,
    TokenHistory,
)
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.supervise.tokens.files import CheckedFile
from airflow_kstream.supervise.tokens.launch import LaunchTokens
from airflow_kstream.views.tables import NOT_KNOWN, add, add_details, cell, details, moment, table
from airflow_kstream.views.triage import page, safe, timeline

_COLOURS = {TokenEventKind.FAILED: "cause", TokenEventKind.REMOVED: "cause", TokenEventKind.RENEWED: "success"}

_HEADINGS = ("token", "whose", "life")


def tokens_table(checked: CheckedFile) -> Table:
    """Return a row for each token; the last column is there if the NameNode checked them."""
    asked = bool(checked.validities)
    rows = table(*_HEADINGS, *(("the NameNode",) if asked else ()), lines=True)
    for token, validity in checked.rows:
        answer = (cell(validity.detail),) if validity else ()
        add(rows, _name(token), *_identifier_cells(token.identifier, checked.now), *answer)
    return rows


def secret_keys_table(keys: tuple[SecretKey, ...]) -> Table:
    """Return a row for each secret key: its alias and its length, never the key."""
    rows = table("secret key", "bytes")
    for key in keys:
        add(rows, key.alias, str(key.length))
    return rows


def launch_table(launch: LaunchTokens) -> Table:
    """Return all that is known from outside about the tokens of an application's launch."""
    rows = details()
    add_details(rows, _launch_rows(launch))
    return rows


def _launch_rows(launch: LaunchTokens) -> Iterator[tuple[str, str]]:
    app, now = launch.application, launch.now
    lifetimes = launch.lifetimes
    yield "application", f"{app.id} of {app.user}, {app.state}"
    if launch.claim:
        yield "stream", f"{launch.stream}, generation {launch.claim.generation}"
        yield "credentials", launch.mode or f"not known: {launch.claim.doubt}"
    yield "its tokens", "not visible from outside the application; inferred from its launch time"
    yield "issued", f"not before {moment(launch.issued, now)}"
    yield (
        "the cluster",
        f"renews for {format_duration(lifetimes.renew_interval)} at a time, "
        f"and at most until {format_duration(lifetimes.max_lifetime)} after the issue",
    )
    yield "launch tokens", f"valid until about {moment(launch.end, now)}, if renewed regularly"
    yield "horizon", _horizon(launch)


def _horizon(launch: LaunchTokens) -> str:
    horizon = launch.horizon
    if horizon is None:
        return "not known: it belongs to no stream, and may or may not make its own tokens from a keytab"
    if horizon.reason is HorizonReason.UNKNOWN:
        return f"unknown: {launch.claim.doubt if launch.claim else horizon.reason}"
    if horizon.hard is None:
        return f"none: {horizon.reason}"
    planned = f"; a restart is planned for {moment(horizon.plan, launch.now)}" if horizon.plan else ""
    return f"{moment(horizon.hard, launch.now)}: {horizon.why}{planned}"


def _name(token: Token) -> Text:
    number = f" {token.identifier.sequence_number}" if isinstance(token.identifier, DelegationToken) else ""
    # Most writers use the service as the alias.
    names = dict.fromkeys((token.alias, token.service))
    return cell(f"{token.kind}{number}", *filter(None, names))


def _identifier_cells(identifier: Identifier, now: datetime) -> tuple[Text, Text]:
    """Return whose token it is, and how long it lives."""
    match identifier:
        case DelegationToken():
            acting = (f"impersonated by {identifier.real_user}",) if identifier.real_user else ()
            renewer = f"renewed by {identifier.renewer or 'nobody'}"
            life = f"issued {moment(identifier.issued, now)}", f"ends {moment(identifier.max_date, now)}"
            return cell(identifier.owner, *acting, renewer), cell(*life)
        case AttemptToken():
            return cell(identifier.attempt), cell("replaced by the ResourceManager in time")
        case KafkaToken():
            return cell(f"token {identifier.token_id}"), cell("known to the brokers")
    damage = (identifier.why,) if identifier.why else ()
    return cell(f"{identifier.byte_count} bytes that are not readable", *damage), cell(NOT_KNOWN)


def history_lines(history: TokenHistory) -> Iterator[str]:
    """Yield what is known of the token before its events."""
    yield f"{history.kind} {history.number} of {history.owner}, for {history.service or NOT_KNOWN}"
    if history.applications:
        yield f"  of {', '.join(history.applications)}"
    ends = f"good until {_clock(history.good_until)}, max date {_clock(history.max_date)}"
    yield f"  issued {_clock(history.issued)}, {ends}"
    if history.usual_share is not None:
        yield f"  renewed {len(history.renewals)} times, usually at {history.usual_share:.0%} of the time that was left"


def events_table(history: TokenHistory) -> Table:
    rows = table("when", "event", "good until", "at", "line")
    for event in history.events:
        share = "" if event.share is None else f"{event.share:.0%}"
        add(rows, _clock(event.when), event.kind.value, _clock(event.until, ""), share, f"{event.file}:{event.line}")
    return rows


def histories_page(histories: Iterable[TokenHistory], of: str) -> str:
    """Return a page with the timeline of each token drawn."""
    body = "".join(_drawn(history) for history in histories)
    return page(of, f"<h1>Delegation tokens in {safe(of)}</h1>{body}")


def _drawn(history: TokenHistory) -> str:
    title, *more = history_lines(history)
    words = "".join(f"<p>{safe(line)}</p>" for line in more)
    points = [(event.when, _words(event), _COLOURS.get(event.kind, "fact")) for event in history.events]
    if history.max_date:
        points.append((history.max_date, "max date", "consequence"))
    ordered = sorted(points, key=lambda point: (point[0] is None, point[0].timestamp() if point[0] else 0.0))
    return f"<h2>{safe(title)}</h2>{words}{timeline(ordered)}"


def _words(event: TokenEvent) -> str:
    until = f", good until {_clock(event.until)}" if event.until else ""
    return f"{event.kind.value}{until}"


def _clock(when: datetime | None, otherwise: str = NOT_KNOWN) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S %z}" if when else otherwise
