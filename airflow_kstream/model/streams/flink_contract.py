"""The contract between a Flink stream's supervisor and the jar in its JobManager: its settings, and what it answers.

`jobs/flink/` has the jar; `kstream.flink.Settings` has the same names. What Spark's driver has, too (claims, markers,
pushes and their answers), stands in `contract.py`. Two kinds of file are Flink's own, both written by the jar:

    kept-00000n     the tokens with which new TaskManagers start, after each
                    change and at least every CONFIRM_EVERY
    resume-00000n   what became of a stop by marker, and its savepoint
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import CONTRACT, contract_terms
from airflow_kstream.model.streams.flink_conf import BACKOFF

# Flink shows no value of a key that has "token" in it.
PREFIX = "security.delegation.token.provider.kstream."
# How often the jar looks, how often Flink asks it for pushed tokens, and how often it confirms; durations of Flink's.
LOOK_EVERY, ROUND_EVERY, CONFIRM_EVERY = (f"{PREFIX}{name}-every" for name in ("look", "round", "confirm"))
# Where CONFIRM_EVERY is not set.
DEFAULT_CONFIRM = timedelta(minutes=5)
# In seconds, and in milliseconds since 1970.
_A_YEAR, _YEAR_6429 = 365 * 86400, 1 << 47


def kept_file(generation: int) -> str:
    """Return the name of the keeper's confirmation: which tokens new TaskManagers of this generation start with."""
    return f"kept-{generation:06d}"


def resume_file(generation: int) -> str:
    """Return the name of the answer to this generation's stop marker."""
    return f"resume-{generation:06d}"


def jar_settings(stream: str, generation: int, folder: str, *, takes_tokens: bool = False) -> dict[str, str]:
    """Return the settings that make the jar take part in the contract."""
    terms = contract_terms(stream, generation, folder, takes_tokens=takes_tokens)
    settings = {PREFIX + key: value for key, value in terms.items()}
    # A TaskManager that dies in a round makes it fail, and by default the next one is an hour away.
    return settings | ({BACKOFF: "1 min"} if takes_tokens else {})


@dataclass(frozen=True)
class KeptToken:
    """A token in the JobManager's token file; without a `sequence_number` it is of a kind that the jar can't read.

    `until` is when it ends without a further renewal; None unless it was pushed: then its identifier alone is known.
    """

    kind: str
    service: str
    owner: str = ""
    real_user: str = ""
    renewer: str = ""
    issued: datetime | None = None
    max_date: datetime | None = None
    sequence_number: int | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Kept:
    """A keeper's confirmation; `at` and `rewritten` are by its host's clock.

    `rewritten` is when it last replaced the file's tokens, None if those of the submission are there still. `trouble`
    is why it can't keep the file up to date, empty if it can.
    """

    generation: int
    application: str
    at: datetime
    every: timedelta
    rewritten: datetime | None
    trouble: str
    tokens: tuple[KeptToken, ...]

    def is_silent(self, now: datetime) -> bool:
        """Return True if the next confirmation is overdue by as much time again."""
        return now > self.at + 2 * self.every


class StopState(StrEnum):
    """The progress of a stop by marker."""

    ASKED = "asked"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True)
class Resume:
    """The jar's answer to a stop marker; `savepoint` is empty unless it is complete, and `why` says what failed.

    `target` is the folder of this job's savepoints alone. If the application ends before the answer was written, what
    lies there with a `_metadata` is the savepoint all the same.
    """

    generation: int
    application: str
    at: datetime
    state: StopState
    job: str
    trigger: str
    target: str
    savepoint: str
    why: str


def read_kept(text: str, generation: int) -> Kept:
    """Read the confirmation of this generation's keeper. Raises InvalidInput: naming the first field that is wrong."""
    fields = _Fields.of(text, generation)
    return Kept(
        generation,
        fields.text("application"),
        fields.moment("time"),
        timedelta(seconds=fields.number("every_seconds", 1, _A_YEAR)),
        fields.moment("rewritten") if fields.text("rewritten") else None,
        fields.text("trouble"),
        tuple(_token(each) for each in fields.objects("tokens")),
    )


def read_resume(text: str, generation: int) -> Resume:
    """Read the answer to this generation's stop marker. Raises InvalidInput: naming the first field that is wrong."""
    fields = _Fields.of(text, generation)
    state = fields.text("state")
    if state not in set(StopState):
        raise InvalidInput(f"its state is {state!r}; allowed: {', '.join(StopState)}")
    words = (fields.text(name) for name in ("job", "trigger", "target", "savepoint", "why"))
    resume = Resume(generation, fields.text("application"), fields.moment("time"), StopState(state), *words)
    if (resume.state is StopState.COMPLETED) != bool(resume.savepoint):
        raise InvalidInput(f"its state is {state}, and its savepoint {resume.savepoint!r}")
    return resume


def _token(fields: _Fields) -> KeptToken:
    kind, service = fields.text("kind"), fields.text("service")
    if "sequence_number" not in fields.all:
        return KeptToken(kind, service)
    return KeptToken(
        kind,
        service,
        fields.text("owner"),
        fields.text("real_user"),
        fields.text("renewer"),
        fields.milliseconds("issued"),
        fields.milliseconds("max_date"),
        fields.number("sequence_number"),
        None if fields.all.get("until") is None else fields.milliseconds("until"),
    )


@dataclass(frozen=True)
class _Fields:
    """The fields of JSON object that somebody wrote on the cluster. Each reader raises InvalidInput."""

    all: Mapping[str, Any]

    @classmethod
    def of(cls, text: str, generation: int) -> _Fields:
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidInput("it is not JSON") from None
        if not isinstance(fields, dict):
            raise InvalidInput("it is not JSON object")
        for name, expected in {"contract": CONTRACT, "generation": generation}.items():
            if fields.get(name) != expected or isinstance(fields[name], bool):
                raise InvalidInput(f"its {name} is {fields.get(name)!r}; expected: {expected!r}")
        return cls(fields)

    def text(self, name: str) -> str:
        value = self.all.get(name)
        if not isinstance(value, str):
            raise InvalidInput(f"its {name} is {value!r}; expected: a text")
        return value

    def number(self, name: str, least: int = 0, most: int = _YEAR_6429) -> int:
        value = self.all.get(name)
        if type(value) is not int or not least <= value <= most:
            raise InvalidInput(f"its {name} is {value!r}; expected: a number from {least} to {most}")
        return value

    def milliseconds(self, name: str) -> datetime:
        return datetime.fromtimestamp(self.number(name) / 1000, UTC)

    def moment(self, name: str) -> datetime:
        text = self.text(name)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or moment.utcoffset() != timedelta(0):
            raise InvalidInput(f"its {name} is {text!r}; expected: a moment in UTC")
        return moment

    def objects(self, name: str) -> list[_Fields]:
        value = self.all.get(name)
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise InvalidInput(f"its {name} is {value!r}; expected: a list of objects")
        return [_Fields(each) for each in value]
