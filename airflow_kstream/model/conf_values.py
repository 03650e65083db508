"""The value of a setting that is passed on to a job: text, or the place of a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Discriminator, Tag

from airflow_kstream.model.fields import Argument
from airflow_kstream.model.secrets import SecretRef

# In brackets, as no field's name is: an error's location has them, and the words for it leave them out.
_TEXT, _REFERENCE = "<text>", "<reference>"


def _kind_of(value: object) -> str:
    return _REFERENCE if isinstance(value, Mapping | SecretRef) else _TEXT


# Which of the two it is meant to be is decided first, so that an error speaks of one.
ConfValue = Annotated[
    Annotated[Argument, Tag(_TEXT)] | Annotated[SecretRef, Tag(_REFERENCE)],
    Discriminator(_kind_of),
]
