"""Tokens as values: their lifetimes, owners and identifiers, without their passwords; and the life of one, as a
ResourceManager or a NameNode logged it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.token import SecretBytes, SecretMessage, Span, written_vint
from airflow_kstream.model.plain import fields_of

# Of Spark's HadoopDelegationTokenManager and of Flink's DefaultDelegationTokenManager: a job with a keytab gets new
# tokens at this share of their renew interval.
USUAL_RENEWAL_RATIO = 0.75
HDFS_TOKEN, KMS_TOKEN = "HDFS_DELEGATION_TOKEN", "kms-dt"
_TEXTS = ("kind", "service")
_LONGEST_NAME = 60
_NAMENODE_KINDS = {HDFS_TOKEN, "WEBHDFS delegation", "SWEBHDFS delegation"}
_BASE64 = re.compile(rb"[\w+/-]+={0,2}", re.ASCII)
_YARN_DATES = {4: "the issue date", 5: "the max date"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TokenLifetimes:
    """The lifetimes that a NameNode grants: each renewal lasts `renew_interval`, none beyond `max_lifetime`.

    `dfs.namenode.delegation.token.renew-interval` and `.max-lifetime`; 1 day and 7 days by Hadoop's defaults.
    """

    renew_interval: timedelta
    max_lifetime: timedelta


@dataclass(frozen=True)
class DelegationToken:
    """The readable part of a Hadoop delegation token: its identifier (AbstractDelegationTokenIdentifier).

    The time of its next expiry is not part of it: only the server that issued it knows that. `real_user` is the user
    that acted for the owner, empty if there was none; a token with an empty `renewer` can't be renewed. Times are the
    issuer's.
    """

    owner: str
    renewer: str
    real_user: str
    issued: datetime
    max_date: datetime
    sequence_number: int
    master_key_id: int

    @classmethod
    def from_url_string(cls, text: str) -> DelegationToken:
        """Parse the identifier out of `Token.encodeToUrlString()`; the password is not kept.

        Raises InvalidInput: when the text is not such a token; the error never contains the text.
        """
        content = SecretBytes(text.encode(errors="replace"))
        # A traceback may be shown with its local variables.
        del text
        identifier = Token.from_url_string(content).identifier
        if isinstance(identifier, DelegationToken):
            return identifier
        why = identifier.why if isinstance(identifier, Opaque) and identifier.why else "it is of another kind"
        raise InvalidInput(f"not a Hadoop delegation token: {why}")


@dataclass(frozen=True)
class AttemptToken:
    """YARN_AM_RM_TOKEN: an application attempt's token for the ResourceManager, which replaces it in time by itself."""

    attempt: str
    master_key_id: int


@dataclass(frozen=True)
class KafkaToken:
    """KAFKA_DELEGATION_TOKEN as Spark keeps it: only the brokers know its owner and its lifetime."""

    token_id: str


@dataclass(frozen=True)
class Opaque:
    """An unread identifier of `byte_count` bytes: its kind is unknown, or it is damaged and `why` says how."""

    byte_count: int
    why: str = ""


Identifier = DelegationToken | AttemptToken | KafkaToken | Opaque


@dataclass(frozen=True)
class Token:
    """One token without its password. `alias` is its name in a credentials file, empty outside of one.

    `identifier_place` and `password_place` are positions in the content it was read from; they don't count for
    equality.
    """

    alias: str
    kind: str
    service: str
    identifier: Identifier
    identifier_place: slice = field(repr=False, compare=False)
    password_place: slice = field(repr=False, compare=False)

    @property
    def max_date(self) -> datetime | None:
        """Return when the token ends regardless of renewals; None if the token itself does not say."""
        return self.identifier.max_date if isinstance(self.identifier, DelegationToken) else None

    @property
    def is_of_namenode(self) -> bool:
        """Return True if NameNodes issue, renew and cancel tokens of this kind."""
        return self.kind in _NAMENODE_KINDS

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data without any secret, the identifier's own fields included."""
        left = (self.max_date - now).total_seconds() if self.max_date else None
        names = {"alias": self.alias, "kind": self.kind, "service": self.service}
        return {**names, **fields_of(self.identifier), "seconds_left": left}

    @classmethod
    def of(cls, alias: str, kind: str, service: str, identifier: Span, password: Span) -> Token:
        """Build a token: read the identifier according to its kind, and keep only the place of the password."""
        place = identifier.place
        return cls(alias, kind, service, read_identifier(kind, identifier), place, password.place)

    @classmethod
    def from_writable(cls, raw: Span, alias: str = "") -> Token:
        """Read what Token.readFields does: length-prefixed identifier and password, Text kind, Text service."""
        name = short_name(alias)
        identifier, password = (raw.sized(f"the {part} of {name}") for part in ("identifier", "password"))
        kind, service = (raw.sized(f"the {part} of {name}").text(f"the {part} of {name}") for part in _TEXTS)
        return cls.of(alias, kind, service, identifier, password)

    @classmethod
    def from_url_string(cls, text: SecretBytes) -> Token:
        """Decode `Token.encodeToUrlString()`. Raises InvalidInput: when it is none, with the byte after decoding."""
        raw = Span(decoded_url_string(text))
        try:
            token = cls.from_writable(raw)
            raw.finished("the token")
        except InvalidInput as error:
            raise InvalidInput(f"not a Hadoop delegation token: {error.message}") from None
        return token

    def url_string(self, content: SecretBytes) -> SecretBytes:
        """Return the whole token in the URL form of WebHDFS, a secret, cut from the content it was read from."""
        identifier, password = (content.reveal()[place] for place in (self.identifier_place, self.password_place))
        return url_form(self.kind, self.service, identifier, SecretBytes(password))


def url_form(kind: str, service: str, identifier: bytes, password: SecretBytes) -> SecretBytes:
    """Return a token in its URL form (Token.encodeToUrlString)."""
    parts = (identifier, password.reveal(), kind.encode(), service.encode())
    written = b"".join(written_vint(len(part)) + part for part in parts)
    return SecretBytes(base64.urlsafe_b64encode(written).rstrip(b"="))


def short_name(alias: str) -> str:
    """Return a token's alias for error messages, shortened and on one line."""
    return f"token {alias[:_LONGEST_NAME]!r}" if alias else "the token"


def decoded_url_string(text: SecretBytes) -> SecretBytes:
    """Decode a token's URL form: base64, which Hadoop writes URL-safe and unpadded and reads either way."""
    decoded = _decoded(text)
    if decoded is None:
        raise InvalidInput("not a Hadoop delegation token: it is not base64")
    return decoded


def _decoded(text: SecretBytes) -> SecretBytes | None:
    """Decode base64, or return None: it raises nothing, so that no traceback can show the bytes in clear."""
    encoded = text.reveal().strip()
    bare = encoded.rstrip(b"=").replace(b"+", b"-").replace(b"/", b"_")
    if not _BASE64.fullmatch(encoded) or len(bare) % 4 == 1:
        return None
    return SecretBytes(base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4)))


def read_identifier(kind: str, raw: Span) -> Identifier:
    """Parse a token's identifier; Opaque for an unknown kind, and for bytes that its kind can't have.

    It raises nothing, so that one odd token does not hide the others beside it.
    """
    reader = _READERS.get(kind)
    if reader is None:
        return Opaque(raw.left)
    length = raw.left
    try:
        return reader(raw)
    except InvalidInput as error:
        return Opaque(length, error.message)


def _writable(raw: Span) -> DelegationToken:
    """Read what AbstractDelegationTokenIdentifier.readFields does: version 0, three Texts, two VLongs, two VInts."""
    version = raw.byte("the identifier's version")
    if version:
        raise raw.wrong(f"the identifier's version is {version}; the only known one is 0", raw.at - 1)
    owner, renewer, real_user = (raw.sized(who).text(who) for who in ("the owner", "the renewer", "the real user"))
    issued, max_date = (_moment(raw, raw.at, raw.vlong(what), what) for what in ("the issue date", "the max date"))
    sequence_number, master_key_id = (raw.vint(what) for what in ("the sequence number", "the master key's id"))
    raw.finished("the identifier")
    return DelegationToken(owner, renewer, real_user, issued, max_date, sequence_number, master_key_id)


def _yarn(raw: Span) -> DelegationToken:
    """Read a YARNDelegationTokenIdentifierProto, or the Writable of Hadoop before 2.6: no protobuf begins with a 0."""
    if raw.reveal()[:1] == b"\x00":
        return _writable(raw)
    at, message = raw.at, SecretMessage(raw, "the identifier")
    message.require(1, 4, 5)
    owner, renewer, real_user = (message.text(number) for number in (1, 2, 3))
    issued, max_date = (_moment(raw, at, message.int64(number), what) for number, what in _YARN_DATES.items())
    return DelegationToken(owner, renewer, real_user, issued, max_date, message.int32(6), message.int32(7))


def _attempt(raw: Span) -> AttemptToken:
    """Read an AMRMTokenIdentifierProto, which holds an ApplicationAttemptIdProto with an ApplicationIdProto."""
    message = SecretMessage(raw, "the identifier")
    message.require(1)
    attempt = message.message(1)
    attempt.require(1)
    application = attempt.message(1)
    numbers = (application.int64(2), application.int32(1), attempt.int32(2))
    if min(numbers) < 0:
        raise raw.wrong("the identifier names an application attempt with a negative number")
    return AttemptToken("appattempt_{}_{:04d}_{:06d}".format(*numbers), message.int32(2))


def _kafka(raw: Span) -> KafkaToken:
    """Read what Spark's KafkaTokenUtil.obtainToken writes: the token's id, as text."""
    return KafkaToken(raw.text("the token's id"))


def _moment(raw: Span, at: int, millis: int, what: str) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        raise raw.wrong(f"{what} is {millis} ms after 1970, which is not a valid date", at) from None


_READERS: Mapping[str, Callable[[Span], Identifier]] = {
    **dict.fromkeys((*_NAMENODE_KINDS, "HIVE_DELEGATION_TOKEN", "MR_DELEGATION_TOKEN", KMS_TOKEN), _writable),
    "RM_DELEGATION_TOKEN": _yarn,
    "TIMELINE_DELEGATION_TOKEN": _yarn,
    "YARN_AM_RM_TOKEN": _attempt,
    "KAFKA_DELEGATION_TOKEN": _kafka,
}


class TokenEventKind(StrEnum):
    """ISSUED by a NameNode. SUBMITTED with an application. RENEWED, mostly by the ResourceManager. FAILED: a renewal,
    which is not tried again. REPLACED: the ResourceManager requests another one. REMOVED: nobody honours it any longer.
    """

    ISSUED = "issued"
    SUBMITTED = "submitted"
    RENEWED = "renewed"
    FAILED = "renewal failed"
    REPLACED = "replaced"
    REMOVED = "removed"


@dataclass(frozen=True)
class TokenEvent:
    """An event at a moment of the log's; of a renewal until when the token is good, and at which `share` of the time
    that was left from the last renewal on it came, None if that is not known."""

    kind: TokenEventKind
    when: datetime | None
    file: str
    line: int
    until: datetime | None = None
    share: float | None = None


@dataclass(frozen=True)
class TokenHistory:
    """A token's events in their order. `max_date` is the end that no renewal can move, None if the log doesn't tell."""

    kind: str
    service: str
    owner: str
    number: int
    applications: tuple[str, ...]
    issued: datetime | None
    max_date: datetime | None
    events: tuple[TokenEvent, ...]

    @property
    def renewals(self) -> tuple[TokenEvent, ...]:
        return tuple(event for event in self.events if event.kind is TokenEventKind.RENEWED)

    @property
    def good_until(self) -> datetime | None:
        """Return the end that the last renewal gave it."""
        return max((event.until for event in self.renewals if event.until), default=None)

    @property
    def usual_share(self) -> float | None:
        """Return the share of a renewal in the middle: 0.9 is the ResourceManager's."""
        shares = sorted(event.share for event in self.renewals if event.share is not None)
        return shares[len(shares) // 2] if shares else None

    @property
    def lasted(self) -> timedelta | None:
        """Return the time from its first event to its last one."""
        known = [event.when for event in self.events if event.when]
        return known[-1] - known[0] if known else None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        more = {"good_until": self.good_until, "usual_share": self.usual_share}
        return {**fields_of(self), **{name: value and str(value) for name, value in more.items()}}
