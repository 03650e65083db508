"""Tokens as tables for people, without their secrets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rich.table import Table
from rich.text import Text

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.kerberos.credentials_file import SecretKey
from airflow_kstream.model.kerberos.tokens import AttemptToken, DelegationToken, Identifier, KafkaToken, Token
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.supervise.tokens.files import CheckedFile
from airflow_kstream.supervise.tokens.launch import LaunchTokens
from airflow_kstream.views.tables import NOT_KNOWN, add, add_details, cell, details, moment, table

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
