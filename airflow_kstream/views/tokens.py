"""Tokens as tables for people and as JSON for programs; what is secret in them is in neither."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.clients.local.credential_files import CredentialFile
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.generation import Claim
from airflow_kstream.model.horizon import HorizonReason
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.printable import printable
from airflow_kstream.model.tokens import AttemptToken, DelegationToken, Identifier, KafkaToken, Token
from airflow_kstream.supervise.tokens.files import TokenValidity
from airflow_kstream.supervise.tokens.launch import LaunchTokens

_HEADINGS = ("token", "whose", "life", "the NameNode")


def tokens_table(file: CredentialFile, standings: Sequence[TokenValidity], now: datetime) -> Table:
    """A row for each token; the last column where the cluster was asked."""
    table = _table(_HEADINGS if standings else _HEADINGS[:-1])
    table.show_lines = True
    for index, token in enumerate(file.credentials.tokens):
        asked = (_cell(standings[index].said),) if standings else ()
        table.add_row(_name(token), *_identifier_cells(token.identifier, now), *asked)
    return table


def secret_keys_table(file: CredentialFile) -> Table:
    table = _table(("secret key", "bytes"))
    for key in file.credentials.secret_keys:
        table.add_row(_cell(key.alias), str(key.length))
    return table


def file_json(file: CredentialFile, standings: Sequence[TokenValidity], now: datetime) -> dict[str, Any]:
    tokens = [_token_json(token, now) for token in file.credentials.tokens]
    for said, standing in zip(tokens, standings, strict=False):
        said["namenode"] = asdict(standing)
    return {
        "file": str(file.path),
        "format": file.credentials.format,
        "warnings": list(file.warnings),
        "tokens": tokens,
        "secret_keys": [asdict(key) for key in file.credentials.secret_keys],
    }


def launch_table(launch: LaunchTokens) -> Table:
    table = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))
    for label, words in _launch_rows(launch):
        table.add_row(Text(label, style="bold"), _cell(words))
    return table


def launch_json(launch: LaunchTokens) -> dict[str, Any]:
    """Plain data, durations in seconds."""
    horizon = launch.horizon
    return {
        "application": launch.application.id,
        "state": launch.application.state,
        "stream": launch.stream or None,
        "generation": launch.claim.generation if launch.claim else None,
        "credentials": _mode(launch.claim) if launch.claim else None,
        "issued_not_before": launch.issued.isoformat(),
        "launch_tokens_end": launch.end.isoformat(),
        "renew_interval_seconds": launch.lifetimes.renew_interval.total_seconds(),
        "max_lifetime_seconds": launch.lifetimes.max_lifetime.total_seconds(),
        "horizon": horizon.hard.isoformat() if horizon and horizon.hard else None,
        "horizon_reason": horizon.reason if horizon else None,
        "planned_restart": horizon.plan.isoformat() if horizon and horizon.plan else None,
    }


def _launch_rows(launch: LaunchTokens) -> Iterator[tuple[str, str]]:
    app, now = launch.application, launch.now
    lifetimes = launch.lifetimes
    yield "application", f"{app.id} of {app.user}, {app.state}"
    if launch.claim:
        yield "stream", f"{launch.stream}, generation {launch.claim.generation}"
        yield "credentials", _mode(launch.claim) or f"not known: {launch.claim.doubt}"
    yield "its tokens", "seen by nobody outside of it; what follows is concluded from when it was launched"
    yield "issued", f"not before {moment(launch.issued, now)}"
    yield (
        "the cluster",
        f"renews for {format_duration(lifetimes.renew_interval)} at a time, "
        f"and at most until {format_duration(lifetimes.max_lifetime)} after the issue",
    )
    yield "launch tokens", f"good until {moment(launch.end, now)} or little longer, if they were renewed"
    yield "horizon", _horizon(launch)


def _horizon(launch: LaunchTokens) -> str:
    horizon = launch.horizon
    if horizon is None:
        return "not known: it is of no stream, and may or may not make its own tokens from a keytab"
    if horizon.reason is HorizonReason.UNKNOWN:
        return f"unknown: {launch.claim.doubt if launch.claim else horizon.reason}"
    if horizon.hard is None:
        return f"none: {horizon.reason}"
    planned = f"; a restart is planned for {moment(horizon.plan, launch.now)}" if horizon.plan else ""
    return f"{moment(horizon.hard, launch.now)}: {horizon.reason}{planned}"


def _mode(claim: Claim) -> str | None:
    return None if isinstance(claim.spec, UnknownSpec) else claim.spec.credentials.mode


def moment(when: datetime, now: datetime) -> str:
    """A time of day, and how far away it is."""
    away = f"in {format_duration(when - now)}" if when >= now else f"{format_duration(now - when)} ago"
    return f"{when:%Y-%m-%d %H:%M:%S %Z} ({away})"


def _name(token: Token) -> Text:
    number = f" {token.identifier.sequence_number}" if isinstance(token.identifier, DelegationToken) else ""
    # Most writers take the service as the alias.
    names = dict.fromkeys((token.alias, token.service))
    return _cell(f"{token.kind}{number}", *filter(None, names))


def _identifier_cells(identifier: Identifier, now: datetime) -> tuple[Text, Text]:
    """Whose it is, and how long it lives."""
    match identifier:
        case DelegationToken():
            acting = (f"acted for by {identifier.real_user}",) if identifier.real_user else ()
            renewer = f"renewed by {identifier.renewer or 'nobody'}"
            life = f"issued {moment(identifier.issued, now)}", f"ends {moment(identifier.max_date, now)}"
            return _cell(identifier.owner, *acting, renewer), _cell(*life)
        case AttemptToken():
            return _cell(identifier.attempt), _cell("replaced by the ResourceManager in time")
        case KafkaToken():
            return _cell(f"token {identifier.token_id}"), _cell("known to the brokers")
    damage = (identifier.why,) if identifier.why else ()
    return _cell(f"{identifier.byte_count} bytes that are not readable", *damage), _cell("not known")


def _token_json(token: Token, now: datetime) -> dict[str, Any]:
    said = {name: _plain(value) for name, value in asdict(token.identifier).items()}
    left = (token.max_date - now).total_seconds() if token.max_date else None
    return {"alias": token.alias, "kind": token.kind, "service": token.service, **said, "seconds_left": left}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _table(headings: Sequence[str]) -> Table:
    return Table(*(Column(heading, overflow="fold") for heading in headings))


def _cell(*lines: str) -> Text:
    """Control characters as escapes: an alias can neither break a table nor drive a terminal."""
    return Text("\n".join(printable(line) for line in lines))
