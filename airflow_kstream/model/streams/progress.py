"""Whether a stream has committed all that had arrived by a moment: the question, what is seen, and the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from airflow_kstream.model.declared import read, written
from airflow_kstream.model.fields import STRICT, Patience, StreamName
from airflow_kstream.model.streams.generation import Desired
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_policies import Offsets


def _moment(value: object) -> datetime:
    """Read a moment as ISO 8601, which Airflow's templates write; in UTC, so that equal ones are written alike."""
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if isinstance(moment, datetime) and moment.tzinfo:
        return moment.astimezone(UTC)
    allowed = "a moment with its time zone, like 2026-03-01T06:00:00+00:00"
    raise PydanticCustomError("refused", "{allowed}", {"allowed": allowed, "hidden": False})


# One without a zone is refused: each host would take it for its own time.
Moment = Annotated[datetime, BeforeValidator(_moment)]


class Proof(StrEnum):
    """The proofs, the strongest first: the offsets that Kafka had, a later batch, or that no batch comes."""

    OFFSETS = "offsets"
    BATCH = "batch"
    QUIET = "quiet"


@dataclass(frozen=True, kw_only=True)
class ProgressCondition:
    """A stream, and the moment up to which everything is to be committed.

    Without a new batch for `quiet_after`, a stream that is well counts as done; None: never. `policies` are those of a
    declaration at hand, as plain data; without them the ones that supervisors keep hold.

    Raises InvalidInput: when a field is wrong.
    """

    __pydantic_config__ = STRICT

    stream: StreamName
    moment: Moment
    quiet_after: Patience | None = None
    policies: Mapping[str, Any] | None = None

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> ProgressCondition:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(ProgressCondition, fields)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, which `from_mapping` takes."""
        return {**written(self), "moment": self.moment.isoformat()}

    @cached_property
    def key(self) -> str:
        """Return text that is equal for equal questions."""
        return json.dumps(self.to_mapping(), sort_keys=True)


@dataclass(frozen=True)
class PartitionAt:
    """A partition as Kafka shows it after a moment: `first` and `end` are its offsets now, `later` is that of the
    first record whose timestamp is not before the moment, and `stamped` is this timestamp; None if there is none."""

    first: int
    end: int
    later: int | None = None
    stamped: datetime | None = None


@dataclass(frozen=True)
class TopicsAt:
    """All partitions of some topics, by their names and numbers, as Kafka showed them at `asked`."""

    asked: datetime
    topics: Mapping[str, Mapping[int, PartitionAt]]


@dataclass(frozen=True)
class CommittedBatch:
    """The newest batch of a query that is planned and committed; `planned` is the NameNode's time of its plan.

    `kafka` is up to where the query has read Kafka's topics with it; `reads_more` is whether it has other sources.
    """

    number: int
    planned: datetime
    kafka: Offsets
    reads_more: bool


@dataclass(frozen=True)
class StreamStanding:
    """A stream as it stands at `now`, by the NameNode's clock.

    `lives` is whether its application is accepted or running. Without a `pulse` nothing shows its progress.
    """

    now: datetime
    desired: Desired
    lives: bool
    pulse: Pulse | None


@dataclass(frozen=True)
class QueryJudgement:
    """The proof that a query has come so far, and in words why; without a proof, why it does not count."""

    proof: Proof | None
    why: str


@dataclass(frozen=True)
class ProgressAnswer:
    """The answer of one look: the judgement of each checkpoint, by its path; none if the stream itself doesn't count,
    for which `why` is the reason."""

    awaited: ProgressCondition
    at: datetime | None
    queries: Mapping[str, QueryJudgement]
    why: str = ""

    @property
    def proof(self) -> Proof | None:
        """Return the weakest proof among the queries'; None as long as one of them has none."""
        proofs = [judgement.proof for judgement in self.queries.values()]
        return max((proof for proof in proofs if proof), key=[*Proof].index) if proofs and all(proofs) else None

    @property
    def words(self) -> str:
        state = "has" if self.proof else "is not known to have"
        told = [f"{path}: {judgement.why}" for path, judgement in self.queries.items()] or [self.why]
        moment = self.awaited.moment.isoformat()
        return f"{self.awaited.stream} {state} committed what had arrived by {moment}; {'; '.join(told)}"

    def report(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "stream": self.awaited.stream,
            "moment": self.awaited.moment.isoformat(),
            "at": self.at.isoformat() if self.at else None,
            "proof": self.proof.value if self.proof else None,
            "words": self.words,
            "queries": {
                path: {"proof": each.proof.value if each.proof else None, "why": each.why}
                for path, each in self.queries.items()
            },
        }
