"""The value of a setting that a job gets: text, or a reference to a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Discriminator, Tag

from airflow_kstream.model.fields import Argument
from airflow_kstream.model.secrets import SecretRef

# No field's name has brackets: pydantic's error locations contain these tags, and our messages leave them out.
_TEXT, _REFERENCE = "<text>", "<reference>"


def _kind_of(value: object) -> str:
    return _REFERENCE if isinstance(value, Mapping | SecretRef) else _TEXT


# The shape decides first which of the two a value is meant to be, so that an error is about one only.
ConfValue = Annotated[
    Annotated[Argument, Tag(_TEXT)] | Annotated[SecretRef, Tag(_REFERENCE)],
    Discriminator(_kind_of),
]
