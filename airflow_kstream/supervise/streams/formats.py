"""The JSON in a stream's folder: what this version writes, and how it reads what any version wrote.

Version 1 had no number in its files. Every file is read in one place and once: fields that this version doesn't know
are dropped, missing ones are unknown rather than none. Of a newer version's claim only the generation is known. A file
that is not JSON raises InvalidInput, and so affects its own stream alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.freeze import FOREVER, Freeze
from airflow_kstream.model.generation import Claim, Desired, DesiredState, FailedSpec, Missing, Position
from airflow_kstream.model.generation_end import PastEnd
from airflow_kstream.model.keytab import KeyVersion
from airflow_kstream.model.launch_token import LaunchToken
from airflow_kstream.model.persisted_spec import UnknownSpec, read_spec
from airflow_kstream.model.spec_fingerprint import fingerprint
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.tokens import TokenLifetimes

VERSION = 2
# Built once: building takes a thousand times as long as reading.
_ENDS = TypeAdapter(list[PastEnd])
_FAILED_SPEC: TypeAdapter[FailedSpec | None] = TypeAdapter(FailedSpec | None)
_NUMBER = TypeAdapter(int)
_TOKENS = TypeAdapter(tuple[LaunchToken, ...])


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
    instead_of: FailedSpec | None = None


def written_claim(draft: ClaimDraft, by: str) -> str:
    return json.dumps(
        {
            "version": VERSION,
            "generation": draft.generation,
            "nonce": draft.nonce,
            "claimed_by": by,
            "reason": draft.reason,
            "spec_fingerprint": fingerprint(draft.spec),
            # Airflow's options are the declaration's alone: no generation is submitted with them.
            "spec": {name: value for name, value in draft.spec.to_mapping().items() if name != "airflow"},
            "renew_interval_seconds": draft.lifetimes.renew_interval.total_seconds(),
            "max_lifetime_seconds": draft.lifetimes.max_lifetime.total_seconds(),
            "positions": _written_positions(draft.positions),
            "adopted": draft.adopted,
            "adopted_started": draft.adopted_started.isoformat() if draft.adopted_started else None,
            "key": {"kvno": draft.key.kvno, "fingerprint": draft.key.fingerprint} if draft.key else None,
            "instead_of": asdict(draft.instead_of) if draft.instead_of else None,
        },
        indent=1,
    )


def read_claim(text: str, generation: int, claimed_at: datetime) -> Claim:
    """Read the claim from the text of this generation's file. Raises InvalidInput: when it holds none."""
    fields = _object(text)
    version = _version(fields)
    if version > VERSION:
        return _of_newer(fields, generation, claimed_at, version)
    nonce = fields.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        raise InvalidInput("it lacks the nonce that names its fence")
    facts = {fact: _fact(fact, fields) for fact in Missing}
    return Claim(
        generation=generation,
        nonce=nonce,
        claimed_at=claimed_at,
        claimed_by=_text(fields, "claimed_by"),
        spec_fingerprint=_text(fields, "spec_fingerprint"),
        spec=read_spec(fields.get("spec"), version),
        lifetimes=facts[Missing.LIFETIMES],
        positions=facts[Missing.POSITIONS] or {},
        reason=_text(fields, "reason"),
        adopted=facts[Missing.ADOPTED] or None,
        started=_moment(fields.get("adopted_started")),
        key=facts[Missing.KEY] or None,
        missing=frozenset(fact for fact, value in facts.items() if value is None),
        instead_of=_failed_spec(fields.get("instead_of")),
    )


def _of_newer(fields: Mapping[str, Any], generation: int, claimed_at: datetime, version: int) -> Claim:
    """Return a claim without its fields: they may mean something else in that version."""
    return Claim(
        generation=generation,
        nonce=_text(fields, "nonce"),
        claimed_at=claimed_at,
        claimed_by=_text(fields, "claimed_by"),
        spec_fingerprint="",
        spec=UnknownSpec(f"its claim is of version {version}, and this program reads up to {VERSION}"),
        lifetimes=None,
        positions={},
        missing=frozenset(Missing),
        newer=True,
    )


def written_desired(desired: Desired, by: str, nonce: str) -> str:
    """Return the text of a desired state; `nonce` distinguishes it from the same state by another writer."""
    return json.dumps(
        {
            "version": VERSION,
            "state": desired.state,
            "restart_up_to": desired.restart_up_to,
            "by": by,
            "reason": desired.reason,
            "nonce": nonce,
        }
    )


def read_desired(text: str, at: datetime) -> Desired:
    """Read the desired state. Raises InvalidInput: when it holds none; an unreadable state does not mean running."""
    fields = _object(text)
    version = _version(fields)
    if version > VERSION:
        raise InvalidInput(f"it is of version {version}, and this program reads up to {VERSION}")
    state, up_to = ("wish", "restart_through") if version == 1 else ("state", "restart_up_to")
    try:
        restart = _NUMBER.validate_python(fields.get(up_to, 0))
        return Desired(DesiredState(str(fields.get(state))), restart, _text(fields, "by"), at, _text(fields, "reason"))
    except (ValueError, ValidationError):
        allowed = ", ".join(DesiredState)
        raise InvalidInput(f"its {state} or {up_to} can't be read; a {state} is one of {allowed}") from None


def written_freeze(freeze: Freeze, by: str, nonce: str) -> str:
    """Return the text of a word on the brake; `nonce` distinguishes it from the same word by another writer."""
    until = freeze.until.isoformat()
    return json.dumps({"version": VERSION, "until": until, "by": by, "reason": freeze.reason, "nonce": nonce})


def read_freeze(text: str, number: int) -> Freeze:
    """Read a word on the brake. One that can't be read, or is of a newer version, holds: it may be a brake."""
    try:
        fields = _object(text)
        version = _version(fields)
    except InvalidInput as error:
        return unread_freeze(number, error)
    until = _moment(fields.get("until"))
    if version > VERSION:
        doubt = f"word {number} is of version {version}, and this program reads up to {VERSION}"
        return Freeze(number, FOREVER, doubt=doubt)
    if until is None:
        return Freeze(number, FOREVER, doubt=f"word {number} does not tell until when it holds")
    return Freeze(number, until, _text(fields, "by"), _text(fields, "reason"))


def unread_freeze(number: int, error: InvalidInput) -> Freeze:
    """Return a word on the brake that can't be read: it holds, since it may be a brake."""
    return Freeze(number, FOREVER, doubt=f"word {number} can't be understood: {error.message}")


def written_positions(positions: Mapping[str, Position], by: str, reason: str = "") -> str:
    """Return the text of the positions that a person accepted, or that a supervisor saw."""
    return json.dumps({"version": VERSION, "positions": _written_positions(positions), "by": by, "reason": reason})


def read_positions(text: str) -> Mapping[str, Position]:
    """Read what `written_positions` wrote. Raises InvalidInput: when there are none to read."""
    fields = _object(text)
    version = _version(fields)
    if version > VERSION:
        raise InvalidInput(f"it is of version {version}, and this program reads up to {VERSION}")
    try:
        return _positions(fields)
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("its positions can't be read") from None


def written_ends(ends: Sequence[PastEnd], by: str, nonce: str) -> str:
    """Return the text of the ends of a stream that nobody planned; `nonce` distinguishes it from another writer's."""
    return json.dumps(
        {"version": VERSION, "ends": _ENDS.dump_python(list(ends), mode="json"), "by": by, "nonce": nonce}
    )


def read_ends(text: str) -> tuple[PastEnd, ...]:
    """Read what `written_ends` wrote. Raises InvalidInput: when there is nothing to read."""
    fields = _object(text)
    version = _version(fields)
    if version > VERSION:
        raise InvalidInput(f"it is of version {version}, and this program reads up to {VERSION}")
    try:
        return tuple(_ENDS.validate_python(fields.get("ends")))
    except ValidationError:
        raise InvalidInput("its ends can't be read") from None


def written_tokens(tokens: Sequence[LaunchToken], nonce: str) -> str:
    """Return the text of a launch's tokens; `nonce` is its claim's: the generation's number alone may come back."""
    return json.dumps({"version": VERSION, "nonce": nonce, "tokens": _TOKENS.dump_python(tuple(tokens), mode="json")})


def read_tokens(text: str, nonce: str) -> tuple[LaunchToken, ...]:
    """Read the tokens of this claim's launch; none if they are another's. Raises InvalidInput: when there are none to
    read."""
    fields = _object(text)
    version = _version(fields)
    if version > VERSION:
        raise InvalidInput(f"it is of version {version}, and this program reads up to {VERSION}")
    if fields.get("nonce") != nonce:
        return ()
    try:
        tokens = _TOKENS.validate_python(fields.get("tokens"))
    except ValidationError:
        raise InvalidInput("its tokens can't be read") from None
    # A time without a zone can't be compared with any clock.
    return tuple(token for token in tokens if all(at is None or at.tzinfo for at in (token.issued, token.ends)))


def written_stop(why: str, by: str) -> str:
    """Return the text of a stop marker. Only people read it: supervisors look only at the file's existence."""
    return json.dumps({"version": VERSION, "why": why, "by": by})


def read_stop(text: str) -> str:
    """Return why a generation was asked to stop, empty if the text does not tell."""
    try:
        return _text(_object(text), "why")
    except InvalidInput:
        return ""


def _fact(fact: Missing, fields: Mapping[str, Any]) -> Any:
    """Read one fact: None if it is missing or damaged, empty if it is known to be absent."""
    try:
        return _FACTS[fact](fields)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _lifetimes(fields: Mapping[str, Any]) -> TokenLifetimes:
    lifetimes = TokenLifetimes(_seconds(fields["renew_interval_seconds"]), _seconds(fields["max_lifetime_seconds"]))
    if min(lifetimes.renew_interval, lifetimes.max_lifetime) <= timedelta():
        raise ValueError(lifetimes)
    return lifetimes


def _seconds(number: object) -> timedelta:
    if not isinstance(number, int | float):
        raise TypeError(number)
    return timedelta(seconds=number)


def _written_positions(positions: Mapping[str, Position]) -> dict[str, list[str | int | None]]:
    return {path: [at.query, at.offset, at.commit] for path, at in positions.items()}


def _positions(fields: Mapping[str, Any]) -> Mapping[str, Position]:
    return {str(path): _position(*at) for path, at in dict(fields["positions"]).items()}


def _position(query: object, offset: object, commit: object) -> Position:
    return Position(None if query is None else str(query), int(str(offset)), int(str(commit)))


def _adopted(fields: Mapping[str, Any]) -> str:
    application = fields["adopted"]
    if not isinstance(application, str | None):
        raise TypeError(application)
    return application or ""


def _key(fields: Mapping[str, Any]) -> KeyVersion | str:
    key = fields["key"]
    return "" if key is None else KeyVersion(int(key["kvno"]), str(key["fingerprint"]))


def _failed_spec(value: object) -> FailedSpec | None:
    """Read it as far as it is there: earlier versions never submit anything but the declared spec."""
    try:
        return _FAILED_SPEC.validate_python(value)
    except ValidationError:
        return None


_FACTS = {
    Missing.LIFETIMES: _lifetimes,
    Missing.POSITIONS: _positions,
    Missing.ADOPTED: _adopted,
    Missing.KEY: _key,
}


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("it is no JSON") from None
    if not isinstance(value, dict):
        raise InvalidInput("it is no JSON object")
    return value


def _version(fields: Mapping[str, Any]) -> int:
    version = fields.get("version", 1)
    if not isinstance(version, int) or version < 1:
        raise InvalidInput(f"its version is {version!r}; allowed is a number from 1")
    return version


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    # A time without a zone can't be compared with any clock.
    return moment if moment and moment.tzinfo else None
