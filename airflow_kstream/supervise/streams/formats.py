"""The JSON in a stream's folder: what this version writes, and how it reads what any version wrote.

Version 1 had no number in its files. Every file is read in one place and once: fields that this version doesn't know
are dropped, missing ones are unknown rather than none. Of a newer version's claim only the generation is known. A file
that is not JSON raises InvalidInput, and so affects its own stream alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.generation import Claim, Desired, DesiredState, Missing, Position
from airflow_kstream.model.keytab import KeyVersion
from airflow_kstream.model.persisted_spec import UnknownSpec, read_spec
from airflow_kstream.model.spec_fingerprint import fingerprint
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.tokens import TokenLifetimes

VERSION = 2


@dataclass(frozen=True)
class ClaimDraft:
    """A claim before it is made; `nonce` distinguishes our own file from a rival's."""

    generation: int
    nonce: str
    spec: StreamSpec
    lifetimes: TokenLifetimes
    positions: Mapping[str, Position]
    reason: str
    adopted: str | None = None
    adopted_started: datetime | None = None
    key: KeyVersion | None = None


def written_claim(draft: ClaimDraft, by: str) -> str:
    return json.dumps(
        {
            "version": VERSION,
            "generation": draft.generation,
            "nonce": draft.nonce,
            "claimed_by": by,
            "reason": draft.reason,
            "spec_fingerprint": fingerprint(draft.spec),
            "spec": draft.spec.to_mapping(),
            "renew_interval_seconds": draft.lifetimes.renew_interval.total_seconds(),
            "max_lifetime_seconds": draft.lifetimes.max_lifetime.total_seconds(),
            "positions": {path: [at.query, at.offset, at.commit] for path, at in draft.positions.items()},
            "adopted": draft.adopted,
            "adopted_started": draft.adopted_started.isoformat() if draft.adopted_started else None,
            "key": {"kvno": draft.key.kvno, "fingerprint": draft.key.fingerprint} if draft.key else None,
        },
        indent=1,
    )


def read_claim(text: str, generation: int, claimed_at: datetime) -> Claim:
    """Read the claim from the text of this generation's file. Raises InvalidInput: when it holds none."""
    said = _object(text)
    version = _version(said)
    if version > VERSION:
        return _of_newer(said, generation, claimed_at, version)
    nonce = said.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        raise InvalidInput("it lacks the nonce that names its fence")
    facts = {fact: _fact(fact, said) for fact in Missing}
    return Claim(
        generation=generation,
        nonce=nonce,
        claimed_at=claimed_at,
        claimed_by=_text(said, "claimed_by"),
        spec_fingerprint=_text(said, "spec_fingerprint"),
        spec=read_spec(said.get("spec"), version),
        lifetimes=facts[Missing.LIFETIMES],
        positions=facts[Missing.POSITIONS] or {},
        reason=_text(said, "reason"),
        adopted=facts[Missing.ADOPTED] or None,
        started=_moment(said.get("adopted_started")),
        key=facts[Missing.KEY] or None,
        missing=frozenset(fact for fact, value in facts.items() if value is None),
    )


def _of_newer(said: Mapping[str, Any], generation: int, claimed_at: datetime, version: int) -> Claim:
    """Return a claim without its fields: they may mean something else in that version."""
    return Claim(
        generation=generation,
        nonce=_text(said, "nonce"),
        claimed_at=claimed_at,
        claimed_by=_text(said, "claimed_by"),
        spec_fingerprint="",
        spec=UnknownSpec(f"its claim is of version {version}, and this program reads up to {VERSION}"),
        lifetimes=None,
        positions={},
        missing=frozenset(Missing),
        newer=True,
    )


def written_desired(state: DesiredState, restart_up_to: int, by: str, reason: str) -> str:
    return json.dumps({"version": VERSION, "state": state, "restart_up_to": restart_up_to, "by": by, "reason": reason})


def read_desired(text: str, at: datetime) -> Desired:
    """Read the desired state. Raises InvalidInput: when it holds none; an unreadable state does not mean running."""
    said = _object(text)
    version = _version(said)
    if version > VERSION:
        raise InvalidInput(f"it is of version {version}, and this program reads up to {VERSION}")
    state, up_to = ("wish", "restart_through") if version == 1 else ("state", "restart_up_to")
    try:
        restart = TypeAdapter(int).validate_python(said.get(up_to, 0))
        return Desired(DesiredState(str(said.get(state))), restart, _text(said, "by"), at, _text(said, "reason"))
    except (ValueError, ValidationError):
        allowed = ", ".join(DesiredState)
        raise InvalidInput(f"its {state} or {up_to} can't be read; a {state} is one of {allowed}") from None


def written_stop(why: str, by: str) -> str:
    """Return the text of a stop marker. Only people read it: supervisors look only at the file's existence."""
    return json.dumps({"version": VERSION, "why": why, "by": by})


def _fact(fact: Missing, said: Mapping[str, Any]) -> Any:
    """Read one fact: None if it is missing or damaged, empty if it is known to be absent."""
    try:
        return _FACTS[fact](said)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _lifetimes(said: Mapping[str, Any]) -> TokenLifetimes:
    found = TokenLifetimes(_seconds(said["renew_interval_seconds"]), _seconds(said["max_lifetime_seconds"]))
    if min(found.renew_interval, found.max_lifetime) <= timedelta():
        raise ValueError(found)
    return found


def _seconds(said: object) -> timedelta:
    if not isinstance(said, int | float):
        raise TypeError(said)
    return timedelta(seconds=said)


def _positions(said: Mapping[str, Any]) -> Mapping[str, Position]:
    return {str(path): _position(*at) for path, at in dict(said["positions"]).items()}


def _position(query: object, offset: object, commit: object) -> Position:
    return Position(None if query is None else str(query), int(str(offset)), int(str(commit)))


def _adopted(said: Mapping[str, Any]) -> str:
    found = said["adopted"]
    if not isinstance(found, str | None):
        raise TypeError(found)
    return found or ""


def _key(said: Mapping[str, Any]) -> KeyVersion | str:
    found = said["key"]
    return "" if found is None else KeyVersion(int(found["kvno"]), str(found["fingerprint"]))


_FACTS = {
    Missing.LIFETIMES: _lifetimes,
    Missing.POSITIONS: _positions,
    Missing.ADOPTED: _adopted,
    Missing.KEY: _key,
}


def _object(text: str) -> Mapping[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("it is no JSON") from None
    if not isinstance(said, dict):
        raise InvalidInput("it is no JSON object")
    return said


def _version(said: Mapping[str, Any]) -> int:
    version = said.get("version", 1)
    if not isinstance(version, int) or version < 1:
        raise InvalidInput(f"its version is {version!r}; allowed is a number from 1")
    return version


def _text(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name, "")
    return found if isinstance(found, str) else ""


def _moment(said: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None
    # A time without a zone can't be compared with any clock.
    return found if found and found.tzinfo else None
