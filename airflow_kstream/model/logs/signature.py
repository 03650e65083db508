"""Signatures: what is known of the lines that failures leave in logs, as data that people write and extend.

A catalogue is a mapping of `signatures`, each by its id. The file of an operator is read like our own; an id that it
repeats replaces ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict
from pydantic.types import StringConstraints

from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import Line, Wait, must
from airflow_kstream.model.log_scan.engines import plain_words
from airflow_kstream.model.log_scan.sections import LinePattern
from airflow_kstream.model.yaml_text import read_mapping

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# What one of the two engines can't do, or what may leave the line.
_NOT_SHARED = re.compile(r"\\[sDW1-9]|\(\?(?!:)|(?<!\[\^)\\n|\[\^(?!\\n)")
_SHARED = (
    "a regular expression for one line: no lookaround, backreference, flag, \\s, \\D, \\W or \\n; write [ \\t], and "
    r"[^\n...] for a class that excludes"
)

# The first and last lines that are kept of a fact: it matters where each stands.
_KEPT = (2000, 1000)
# In milliseconds, of what a line may tell to have gone on: a month.
_LONGEST = 30 * 86_400_000


class SignatureKind(StrEnum):
    """The part that a signature's lines may have in a failure.

    CAUSE: it may be what everything began with. CONSEQUENCE: something else caused it, always. NOISE: it means nothing.
    FACT: it is not a trouble, but says something about one. PROGRESS: a part of the job's work is done. SUCCESS: its
    writer ended as it should.
    """

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    NOISE = "noise"
    FACT = "fact"
    PROGRESS = "progress"
    SUCCESS = "success"


class LineRelation(StrEnum):
    """The relation of the line that proves a composition to the lines of its other parts.

    AFTER: one of these was before it. YOUNG_TOKEN: its token was made less than a renew interval before.
    AGED_TOKEN: its token was past its max-lifetime. OF_ANOTHER_APPLICATION: it names an application that is none of its
    log's.
    """

    AFTER = "after"
    YOUNG_TOKEN = "young-token"
    AGED_TOKEN = "aged-token"
    OF_ANOTHER_APPLICATION = "of-another-application"


def _is_shared(regex: str) -> bool:
    if _NOT_SHARED.search(regex):
        return False
    try:
        re.compile(regex)
        plain_words(regex)
    except (re.error, ValueError):
        return False
    return True


def _compiles(regex: str) -> bool:
    try:
        re.compile(regex)
    except re.error:
        return False
    return True


def _has_a_duration(regex: str) -> bool:
    try:
        return bool({"ms", "s"} & re.compile(regex).groupindex.keys())
    except re.error:
        return False


SignatureId = Annotated[str, must(lambda text: _ID.fullmatch(text) is not None, "words of a-z and 0-9 with - between")]
HeadRegex = Annotated[str, must(_compiles, "a regular expression")]
LineRegex = Annotated[str, must(_is_shared, _SHARED + "; each alternative has four plain characters in a row")]
Lasted = Annotated[str, must(_has_a_duration, "a regular expression with a group ms or s, of digits")]
# Text over several lines, which YAML may fold.
Prose = Annotated[str, StringConstraints(strip_whitespace=True)]


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The meaning of one kind of lines.

    It has `patterns`, one of which matches a line; or it is seen where `all_of` other signatures are seen, in one
    application, and none of `none_of`. With `within_lines` they are in one log, no further apart, and no line of
    `not_across` is between them. The lines of the part that proves it, the last cause of them, are in its `relation` to
    those of the others, and of those that it is `told_by`, which may be missing.

    A cause explains the causes that it `leads_to`, if they come no more than `within` after it; None is however late. A
    trouble that the job's work outlives by `within` is over. A `weak` one counts only where no other cause is seen, and
    each only after `count` lines. `lasted` finds in its line for how long it had gone on by then, as a group `ms` or
    `s`. `ends` is whether its lines mark the end of what wrote them, `whole_record` whether noise speaks for all lines
    of its record. A line doesn't count in a record whose head matches `not_under`. `examples` are lines that it must
    match, `counterexamples` lines that it must not.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    kind: SignatureKind
    title: Line
    patterns: tuple[LineRegex, ...] = ()
    all_of: tuple[SignatureId, ...] = ()
    none_of: tuple[SignatureId, ...] = ()
    within_lines: int | None = None
    not_across: tuple[SignatureId, ...] = ()
    relation: LineRelation | None = None
    told_by: tuple[SignatureId, ...] = ()
    means: Prose = ""
    remedy: Prose = ""
    references: tuple[Line, ...] = ()
    versions: Line | None = None
    leads_to: tuple[SignatureId, ...] = ()
    within: Wait | None = timedelta(minutes=30)
    weak: bool = False
    ends: bool = False
    whole_record: bool = False
    not_under: HeadRegex | None = None
    count: int = 1
    lasted: Lasted | None = None
    examples: tuple[Prose, ...] = ()
    counterexamples: tuple[Prose, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.patterns) == bool(self.all_of):
            raise InvalidInput(f"{self.title}: it has both or none of patterns and all_of; allowed is one of them")
        if self.patterns and not self.examples:
            raise InvalidInput(f"{self.title}: it has no examples")
        if self.kind is SignatureKind.CAUSE and not (self.means and self.remedy):
            raise InvalidInput(f"{self.title}: a cause says what it means, and its remedy")

    def matches(self, line: str) -> bool:
        """Return whether one of its patterns matches the line."""
        return any(re.search(regex, line) for regex in self.patterns)

    def counts_under(self, head: str) -> bool:
        """Return whether a line counts in a record with this head."""
        return self.not_under is None or re.search(self.not_under, head) is None

    def duration_in(self, line: str) -> timedelta:
        """Return for how long it had gone on when the line was written, as far as that tells."""
        found = re.search(self.lasted, line) if self.lasted else None
        if found is None:
            return timedelta()
        parts = {unit: int(digits) for unit, digits in found.groupdict().items() if digits}
        milliseconds = parts.get("ms", 0) + 1000 * parts.get("s", 0)
        return timedelta(milliseconds=milliseconds if milliseconds < _LONGEST else 0)


@dataclass(frozen=True)
class _CatalogueFile:
    __pydantic_config__ = ConfigDict(extra="forbid")

    signatures: Mapping[SignatureId, Signature]


def signatures_in(text: str) -> Mapping[str, Signature]:
    """Read a file of signatures. Raises InvalidInput: when the text is not YAML, or a field is wrong."""
    return read(_CatalogueFile, read_mapping(text)).signatures


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All signatures by their ids. Two catalogues are never equal: what is compiled of one is kept by it."""

    signatures: Mapping[str, Signature] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, signature in self.signatures.items():
            named = (
                *signature.leads_to, *signature.all_of, *signature.none_of, *signature.not_across, *signature.told_by,
            )  # fmt: skip
            if unknown := sorted(set(named) - self.signatures.keys()):
                raise InvalidInput(f"{name} names {', '.join(unknown)}, which the catalogue does not have")
            if any(self.signatures[part].all_of for part in signature.all_of):
                raise InvalidInput(f"{name}: a part of all_of has parts itself; allowed are signatures with patterns")

    def extended(self, text: str) -> Catalogue:
        """Return it with the signatures of a file, which replace those of the same ids.

        Raises InvalidInput: when the text is not YAML, a field is wrong, or an id is named that nobody has.
        """
        return Catalogue({**self.signatures, **signatures_in(text)})

    def of_kind(self, kind: SignatureKind) -> Mapping[str, Signature]:
        return {name: signature for name, signature in self.signatures.items() if signature.kind is kind}

    def line_patterns(self) -> tuple[LinePattern, ...]:
        """Return what a scanner looks for: a signature with several patterns has them all under its id."""
        return tuple(
            LinePattern(name, "|".join(signature.patterns), *(_KEPT if signature.kind is SignatureKind.FACT else ()))
            for name, signature in self.signatures.items()
            if signature.patterns
        )
