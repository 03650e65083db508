"""Accepted findings, as a person writes them: each with who accepted it, why, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from annotated_types import MaxLen

from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import STRICT, Line, StreamName, must
from airflow_kstream.model.yaml_text import read_mapping


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


# As YAML leaves it: text.
Day = Annotated[str, must(_is_day, "a day like 2027-06-30")]


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """One accepted finding. `finding` is its id, such as `rm-privileges`; without `streams` it is accepted for all.

    From the day `until` on it is reported again.
    """

    __pydantic_config__ = STRICT

    finding: Line
    by: Line
    why: Line
    until: Day
    streams: Annotated[tuple[StreamName, ...], MaxLen(1000)] = ()

    @property
    def ends(self) -> date:
        return date.fromisoformat(self.until)


@dataclass(frozen=True)
class Baseline:
    """The content of the file:

    accepted:
      - finding: nm-recovery
        by: jane@example.com
        why: NodeManagers are restarted in the streams' maintenance window only
        until: 2027-06-30
        streams: [orders]
    """

    __pydantic_config__ = STRICT

    accepted: Annotated[tuple[Acceptance, ...], MaxLen(1000)] = ()

    def __post_init__(self) -> None:
        keys = [(one.finding, one.streams) for one in self.accepted]
        twice = sorted({finding for finding, streams in keys if keys.count((finding, streams)) > 1})
        if twice:
            raise InvalidInput(f"accepted names {', '.join(twice)} twice for the same streams")

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> Baseline:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(Baseline, fields)

    @classmethod
    def from_yaml(cls, text: str) -> Baseline:
        """Read YAML; an empty text accepts nothing. Raises InvalidInput: also when the text is not YAML."""
        return cls.from_mapping(read_mapping(text))
