"""The JSON in a stream's folder and in orders: what this version writes, and how it reads it.

Every file is read in one place and once: fields that this version doesn't know are dropped, missing ones are unknown
rather than none. Only the generation is known of a claim of another version. A file that is not JSON raises
InvalidInput, and so affects its own stream alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from airflow_kstream.model.clusters.authors import OrderFile
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.declarations import fingerprint, read_spec
from airflow_kstream.model.streams.freeze import LONGEST, Freeze
from airflow_kstream.model.streams.generation import (
    Adoption,
    Age,
    Claim,
    ClaimCredentials,
    ClaimFile,
    ClaimStart,
    Desired,
    DesiredState,
    FailedSpec,
    Missing,
    Position,
    spoken_by,
)
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.horizon import LaunchToken
from airflow_kstream.model.streams.resume import ResumePoint, StartWord
from airflow_kstream.model.streams.stream import EngineName, StreamSpec
from airflow_kstream.model.versioned import UnknownSpec, read, read_any, write

T = TypeVar("T")
# The first whose claims are believed by their authors. Earlier ones are refused.
VERSION = 3
# Of claims by their engine: a supervisor that knows Spark alone would submit Flink's stream as its own.
CLAIM_VERSIONS = {EngineName.SPARK: VERSION, EngineName.FLINK: 4}
# Built once: building takes a thousand times as long as reading.
_ENDS = TypeAdapter(list[PastEnd])
_FAILED_SPEC: TypeAdapter[FailedSpec] = TypeAdapter(FailedSpec)
_RESUME: TypeAdapter[ResumePoint] = TypeAdapter(ResumePoint)
_START: TypeAdapter[StartWord] = TypeAdapter(StartWord)
_NUMBER = TypeAdapter(int)
_JOB = re.compile("[0-9a-f]{32}")
# What lies beyond is not an honest writer's, and nobody could reckon with it.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST = timedelta(days=200 * 365)
_SETTINGS = TypeAdapter[Mapping[str, str]](dict[str, str])
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
    adopted_job: str | None = None
    adopted_settings: Mapping[str, str] = field(default_factory=dict)
    key: KeyVersion | None = None
    start: ClaimStart = field(default_factory=ClaimStart)


def written_claim(draft: ClaimDraft, by: str) -> str:
    return write(
        CLAIM_VERSIONS[draft.spec.engine],
        {
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
            "adopted_job": draft.adopted_job,
            **({"adopted_settings": dict(draft.adopted_settings)} if draft.adopted_settings else {}),
            "key": _written_key(draft.key),
            "instead_of": asdict(draft.start.instead_of) if draft.start.instead_of else None,
            **({"resume": asdict(draft.start.resume)} if draft.start.resume else {}),
        },
        indent=1,
    )


def read_claim(text: str, generation: int, claimed_at: datetime) -> Claim:
    """Read the claim from the text of this generation's file. Raises InvalidInput: when it holds none."""
    version, fields = read_any(text)
    if version not in CLAIM_VERSIONS.values():
        return _of_another_version(fields, generation, claimed_at, version)
    nonce = fields.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        raise InvalidInput("it lacks the nonce that names its fence")
    if (said := fields.get("generation")) != generation:
        # A file that is moved keeps its owner.
        raise InvalidInput(f"it says that it is of generation {said}")
    facts = {fact: _fact(fact, fields) for fact in Missing}
    return Claim(
        generation=generation,
        nonce=nonce,
        claimed_at=claimed_at,
        claimed_by=_text(fields, "claimed_by"),
        spec_fingerprint=_text(fields, "spec_fingerprint"),
        spec=read_spec(fields.get("spec")),
        credentials=ClaimCredentials(lifetimes=facts[Missing.LIFETIMES], key=facts[Missing.KEY] or None),
        positions=facts[Missing.POSITIONS] or {},
        reason=_text(fields, "reason"),
        adoption=Adoption(
            application=facts[Missing.ADOPTED] or None,
            started=_sane(_moment(fields.get("adopted_started"))),
            job=_job(fields),
            settings=_as_written(_SETTINGS, fields.get("adopted_settings")) or {},
        ),
        file=ClaimFile(missing=frozenset(fact for fact, value in facts.items() if value is None)),
        start=ClaimStart(
            _as_written(_FAILED_SPEC, fields.get("instead_of")), _as_written(_RESUME, fields.get("resume"))
        ),
    )


def _of_another_version(fields: Mapping[str, Any], generation: int, claimed_at: datetime, version: int) -> Claim:
    """Return a claim without its fields: they may mean something else in that version."""
    newer = f"its claim is of version {version}, and this program reads up to {max(CLAIM_VERSIONS.values())}"
    older = (
        f"its folder is of an earlier format (version {version}), which is not read; "
        "`kstream streams adopt` takes over what runs, and what doesn't run starts from nothing once "
        "the folder is moved away"
    )
    return Claim(
        generation=generation,
        nonce=_text(fields, "nonce"),
        claimed_at=claimed_at,
        claimed_by=_text(fields, "claimed_by"),
        spec_fingerprint="",
        spec=UnknownSpec(newer if version > VERSION else older),
        credentials=ClaimCredentials(lifetimes=None),
        positions={},
        file=ClaimFile(missing=frozenset(Missing), age=Age.NEWER if version > VERSION else Age.OLDER),
    )


def written_desired(desired: Desired, by: str, nonce: str) -> str:
    """Return the text of a desired state; `nonce` distinguishes it from the same state by another writer."""
    said = {"state": desired.state, "restart_up_to": desired.restart_up_to, "by": by, "reason": desired.reason}
    start = {"start": asdict(desired.start)} if desired.start else {}
    return write(VERSION, {**said, **start, "nonce": nonce})


def read_desired(text: str, order: OrderFile) -> Desired:
    """Read the desired state. Raises InvalidInput: when it holds none; an unreadable state does not mean running."""
    fields = read(text, VERSION)
    try:
        restart = _NUMBER.validate_python(fields.get("restart_up_to", 0))
        state = DesiredState(str(fields.get("state")))
    except (ValueError, ValidationError):
        allowed = ", ".join(DesiredState)
        raise InvalidInput(f"its state or restart_up_to can't be read; a state is one of {allowed}") from None
    by, reason = _text(fields, "by"), _text(fields, "reason")
    start = _as_written(_START, fields.get("start"))
    return Desired(state, restart, by, order.at, reason, order.author, order.number, start)


def written_freeze(until: datetime, by: str, reason: str, nonce: str) -> str:
    """Return the text of an order to freeze, or to lift that.

    `nonce` distinguishes it from the same order by another writer.
    """
    return write(VERSION, {"until": until.isoformat(), "by": by, "reason": reason, "nonce": nonce})


def read_freeze(text: str, order: OrderFile, since: datetime) -> Freeze:
    """Read an order to freeze that was given at `since`.

    One that can't be read, or is of another version, may be a freeze: it holds for as long as any freeze may.
    """
    try:
        fields = read(text, VERSION)
    except InvalidInput as error:
        return unread_freeze(order, error, since)
    until = _moment(fields.get("until"))
    if until is None:
        return unread_freeze(order, InvalidInput("it does not tell until when it holds"), since)
    by, reason = _text(fields, "by"), _text(fields, "reason")
    return Freeze(order.number, min(until, since + LONGEST), spoken_by(by, order.author), reason)


def unread_freeze(order: OrderFile, error: InvalidInput | Denied, since: datetime) -> Freeze:
    """Return an order to freeze that can't be read."""
    doubt = f"{order.path} of {order.author} can't be understood: {error.message}"
    return Freeze(order.number, since + LONGEST, doubt=doubt)


def written_positions(positions: Mapping[str, Position], by: str, reason: str = "") -> str:
    """Return the text of the positions that a person accepted, or that a supervisor saw."""
    return write(VERSION, {"positions": _written_positions(positions), "by": by, "reason": reason})


def read_positions(text: str) -> Mapping[str, Position]:
    """Read what `written_positions` wrote. Raises InvalidInput: when there are none to read."""
    fields = read(text, VERSION)
    try:
        return _positions(fields)
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("its positions can't be read") from None


def written_ends(ends: Sequence[PastEnd], by: str, nonce: str) -> str:
    """Return the text of the ends of a stream that nobody planned; `nonce` distinguishes it from another writer's."""
    # The clues stand among the other fields of their end.
    written = [end | end.pop("clues") for end in _ENDS.dump_python(list(ends), mode="json")]
    return write(VERSION, {"ends": written, "by": by, "nonce": nonce})


def read_ends(text: str) -> tuple[PastEnd, ...]:
    """Read what `written_ends` wrote. Raises InvalidInput: when there is nothing to read."""
    fields = read(text, VERSION)
    try:
        ends = tuple(_ENDS.validate_python([{**end, "clues": end} for end in fields["ends"]]))
    except (ValidationError, KeyError, TypeError):
        raise InvalidInput("its ends can't be read") from None
    if not all(_sane(end.at) and _sane(end.claimed) and abs(end.lasted) <= _LONGEST for end in ends):
        raise InvalidInput("the times of its ends can't be")
    return ends


def written_tokens(tokens: Sequence[LaunchToken], nonce: str) -> str:
    """Return the text of a launch's tokens; `nonce` is its claim's: the generation's number alone may come back."""
    return write(VERSION, {"nonce": nonce, "tokens": _TOKENS.dump_python(tuple(tokens), mode="json")})


def read_tokens(text: str, nonce: str) -> tuple[LaunchToken, ...]:
    """Read the tokens of this claim's launch; none if they are another's. Raises InvalidInput: when there are none to
    read."""
    fields = read(text, VERSION)
    if fields.get("nonce") != nonce:
        return ()
    try:
        tokens = _TOKENS.validate_python(fields.get("tokens"))
    except ValidationError:
        raise InvalidInput("its tokens can't be read") from None
    return tuple(token for token in tokens if all(at is None or _sane(at) for at in (token.issued, token.ends)))


def written_stop(generation: int, why: str, by: str) -> str:
    """Return the text of a stop marker. Its driver reads the generation; supervisors look at the file's existence."""
    return write(VERSION, {"generation": generation, "why": why, "by": by})


def read_stop(text: str) -> str:
    """Return why a generation was asked to stop, empty if the text does not tell."""
    try:
        return _text(read_any(text)[1], "why")
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
    if not all(timedelta() < one <= _LONGEST for one in (lifetimes.renew_interval, lifetimes.max_lifetime)):
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


def _job(fields: Mapping[str, Any]) -> str | None:
    """Read the id of an adopted job, which becomes part of a path."""
    job = _text(fields, "adopted_job")
    return job if _JOB.fullmatch(job) else None


def _key(fields: Mapping[str, Any]) -> KeyVersion | str:
    key = fields["key"]
    if key is None:
        return ""
    return KeyVersion(int(key["kvno"]), str(key["fingerprint"]), _sane(_moment(key.get("stamped"))))


def _written_key(key: KeyVersion | None) -> dict[str, Any] | None:
    if key is None:
        return None
    stamped = key.stamped.isoformat() if key.stamped else None
    return {"kvno": key.kvno, "fingerprint": key.fingerprint, "stamped": stamped}


def _as_written(kind: TypeAdapter[T], value: object) -> T | None:
    """Read it as far as it is there."""
    try:
        return kind.validate_python(value)
    except ValidationError:
        return None


_FACTS = {
    Missing.LIFETIMES: _lifetimes,
    Missing.POSITIONS: _positions,
    Missing.ADOPTED: _adopted,
    Missing.KEY: _key,
}


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment and _is_comparable(moment) else None


def _sane(moment: datetime | None) -> datetime | None:
    """Return the time if it can be one of a cluster, None otherwise."""
    return moment if moment and _is_comparable(moment) and _FIRST <= moment <= _LAST else None


def _is_comparable(moment: datetime) -> bool:
    """Return whether it can be compared with any clock: it has a zone."""
    return moment.utcoffset() is not None
