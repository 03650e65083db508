"""The declaration of the tokens on a cluster that are watched, as people write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from annotated_types import MaxLen
from pydantic import ConfigDict

from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import ApplicationId, Schedule, TokenFile, UserName, Wait, Word
from airflow_kstream.model.streams.airflow_options import AirflowOptions
from airflow_kstream.model.yaml_text import read_mapping

_SOURCES = ("users", "tags", "applications", "files")


@dataclass(frozen=True, kw_only=True)
class TokenDeclaration:
    """The content of the file that declares which tokens of a cluster are watched.

    Watched are the running applications of these YARN `users`, with one of these YARN `tags`, or with these ids, and
    the credentials `files` (absolute paths on the worker, or hdfs:// URIs). A token needs a hand when at most `within`
    is left of its max lifetime. `every` is the DAG's schedule.

    Raises InvalidInput: when a field is wrong, or nothing is named.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    users: Annotated[tuple[UserName, ...], MaxLen(100)] = ()
    tags: Annotated[tuple[Word, ...], MaxLen(100)] = ()
    applications: Annotated[tuple[ApplicationId, ...], MaxLen(1000)] = ()
    files: Annotated[tuple[TokenFile, ...], MaxLen(1000)] = ()
    within: Wait = timedelta(days=1)
    every: Schedule = timedelta(hours=1)
    airflow: AirflowOptions = field(default_factory=AirflowOptions)

    def __post_init__(self) -> None:
        if not any(getattr(self, name) for name in _SOURCES):
            raise InvalidInput(f"it names nothing to watch; give one or more of {', '.join(_SOURCES)}")

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> TokenDeclaration:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(TokenDeclaration, fields)

    @classmethod
    def from_yaml(cls, text: str) -> TokenDeclaration:
        """Read YAML. Raises InvalidInput: also when the text is not YAML."""
        return cls.from_mapping(read_mapping(text))
