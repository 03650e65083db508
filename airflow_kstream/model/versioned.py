"""The envelope of the JSON files that we keep on HDFS: an object that says of which version its format is.

What another version wrote may mean something else, so a reader goes by the number before it takes up any field. The
number of a format rises when what it holds means something else, not when a field is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_kstream.model.errors import InvalidInput

# Set in pydantic's context: values that were accepted once are read even if they would be refused today.
PERSISTED = "persisted"


@dataclass(frozen=True)
class UnknownSpec:
    """A stand-in for a spec that can't be read; `why` gives the reason, as the end of a sentence."""

    why: str


def write(version: int, fields: Mapping[str, Any], indent: int | None = None) -> str:
    """Return the text of a file of this version, in one line unless people are to read it."""
    return json.dumps({"version": version, **fields}, indent=indent)


def read(text: str, version: int) -> Mapping[str, Any]:
    """Return the fields of a file of this version. Raises InvalidInput: as `read_any`, or when it is of another one."""
    found, fields = read_any(text)
    if found != version:
        raise InvalidInput(f"it is of version {found}, and this program reads {version}")
    return fields


def read_any(text: str) -> tuple[int, Mapping[str, Any]]:
    """Return a file's version and its fields. Raises InvalidInput: when it is not JSON object, or tells no version."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("it is not JSON") from None
    if not isinstance(fields, dict):
        raise InvalidInput("it is not JSON object")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise InvalidInput(f"its version is {version!r}; allowed is a number from 1")
    return version, fields
