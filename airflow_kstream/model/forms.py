"""A form's fields, derived from a declaration's: the JSON schema of its kind, its default, and the words beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from airflow_kstream.model.declared import written
from airflow_kstream.model.durations import format_duration, parse_duration, written_duration

_KEPT = ("type", "pattern", "items", "enum", "minimum", "maximum")
_HOW = {"array": " One a line.", "duration": " Written like 90s, 15m, 6h or 1h30m."}


@dataclass(frozen=True)
class Said:
    """The words for a field, in an annotation of it: its title in a form, and its meaning, everywhere."""

    title: str
    help: str


def help_of(kind: type[Any], name: str) -> str:
    """Return the meaning of this field, for a command as for a form."""
    return _said(kind, name).help


def form_of(kind: Any, name: str) -> dict[str, Any]:
    """Return the field as Airflow's forms take it: a JSON schema with `default`, `title` and `description`.

    A form sends an empty line as an empty text, and an empty field as null.
    """
    root = _schema(kind)
    schema = _flat(root["properties"][name], root.get("$defs", {}))
    (field,) = (field for field in fields(kind) if field.name == name)
    required = field.default is MISSING and field.default_factory is MISSING
    how = str(schema.pop("format", schema["type"]))
    if how == "array":
        items = {key: value for key, value in schema["items"].items() if key in _KEPT}
        schema["items"] = items | ({"pattern": f"{items['pattern']}|^$"} if "pattern" in items else {})
        schema["type"] = "array" if required else ["array", "null"]
    said = _said(kind, name)
    default = [] if required else default_text(field.default)
    return {"default": default, "title": said.title, "description": said.help + _HOW.get(how, ""), **schema}


def default_text(value: object) -> Any:
    """Return a value as a form shows it: plain data, and durations as people write them."""
    if not isinstance(value, timedelta):
        return written(value)
    short = format_duration(value).replace(" ", "")
    return short if parse_duration(short) == value else written_duration(value)


@cache
def _schema(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema()


def _said(kind: type[Any], name: str) -> Said:
    hint = get_type_hints(kind, include_extras=True)[name]
    return next(said for said in hint.__metadata__ if isinstance(said, Said))


def _flat(schema: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Return one level: the kind that is referred to, and what may be null as a type of two names."""
    if "$ref" in schema:
        return _flat(kinds[schema["$ref"].rpartition("/")[2]], kinds)
    if "anyOf" in schema:
        one, *others = (_flat(option, kinds) for option in schema["anyOf"])
        return one | {"type": [one["type"], *(other["type"] for other in others)]}
    return {key: schema[key] for key in (*_KEPT, "format") if key in schema}
