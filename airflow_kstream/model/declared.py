"""The one reader for declarations that people write: YAML, forms, connections, a DAG's Python.

    name is 'Orders'; allowed is 1 to 50 of a-z, 0-9, - and _, neither - nor _ at the ends; ...
    deploy.quue: there is no such field; the fields of deploy are queue, main_class, ...

A dataclass declares its fields with the kinds of `model.fields`. Pydantic checks all fields and reports every wrong
one; this module has the words for it, and names what a person most likely meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from airflow_kstream.model.durations import written_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.printable import printable
from airflow_kstream.model.secrets import MASK, is_secret, without_secrets
from airflow_kstream.model.versioned import PERSISTED


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean orders?)` for the known name that is nearest to this one, nothing if none is near."""
    nearest = get_close_matches(name, list(known), n=1)
    return f" (did you mean {nearest[0]}?)" if nearest else ""


T = TypeVar("T")

# In a field's metadata: what to write into a declaration that lacks the field.
IF_MISSING = "if_missing"
# An attribute of a class: what to write instead of a field that it lacks, by the name that people know from elsewhere.
INSTEAD = "__instead__"
# Limits that keep a refusal readable: the number of wrong fields that it names, and of characters shown of a value.
_NAMED, _SHOWN = 8, 60
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}
_LONG = 10**20
_CONTAINERS: dict[type[Any] | tuple[type[Any], ...], str] = {Mapping: "a mapping", (list, tuple, set): "a list"}
_PLAIN = {str, int, float, bool, type(None)}
_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
# Our own checks of several values together raise whole sentences.
_SENTENCES = {"value_error": ": ", "conf": " "}
_MISSING = {"missing", "missing_argument", "union_tag_not_found"}
_ALLOWED = {
    # The refusals of our own kinds, see model.fields.
    "refused": "{allowed}",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "mapping_type": "a mapping of names to values",
    "dataclass_type": "a mapping of fields to values",
    "dataclass_exact_type": "a mapping of fields to values",
    "model_type": "a mapping of fields to values",
    "model_attributes_type": "a mapping of fields to values",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "union_tag_invalid": "{expected_tags}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "too_long": "{max_length} entries or fewer",
    "too_short": "{min_length} entries or more",
    "time_delta_type": "a duration like 90s, 15m, 6h, 7d or 1h30m",
    "time_delta_parsing": "a duration like 90s, 15m, 6h, 7d or 1h30m",
}


def read(kind: type[T], data: object) -> T:
    """Build `kind` from plain data.

    Raises InvalidInput: when a field is wrong. It names every wrong field (dotted), the value given (never a secret)
    and the values allowed.
    """
    return _read(kind, data, {})


def _read(kind: type[T], data: object, context: dict[str, bool]) -> T:
    try:
        value: T = _adapter(kind).validate_python(dict(data) if isinstance(data, Mapping) else data, context=context)
        return value
    except ValidationError as error:
        complaints = _complaints(kind, error)
        raise InvalidInput("; ".join(_first(complaints)), faults=complaints) from None
    except RecursionError:
        raise InvalidInput("it is nested too deeply") from None


def read_persisted(kind: type[T], data: object) -> T:
    """Build `kind` from data that was accepted earlier, including what only an earlier version accepted.

    It still checks types, but no longer what a value means.
    """
    return _read(kind, data, {PERSISTED: True})


def written(value: Any) -> Any:
    """Return plain data that `read` accepts: durations as text, enums as their values, dataclasses as mappings."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, timedelta):
        return written_duration(value)
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "__fspath__"):
        return str(value)
    if is_dataclass(value):
        return {field.name: written(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): written(item) for key, item in value.items()}
    return [written(item) for item in value] if isinstance(value, tuple | list) else value


def shown(value: object) -> str:
    """Return a value so that it fits into a line: the start of a text, no secret; for a list, only that it is one."""
    for kind, word in _CONTAINERS.items():
        if isinstance(value, kind):
            return word
    if value is None or value == "":
        return "empty"
    if isinstance(value, str):
        # Such as `environment: DB_PASSWORD=x`, which is not a mapping.
        value = without_secrets(value[: _SHOWN * 4])
    text = str(value) if isinstance(value, bool | int | float) and abs(value) < _LONG else repr(value)[: _SHOWN * 4]
    return text if len(text) <= _SHOWN + 2 else text[:_SHOWN] + "…"


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter, built once: building takes a thousand times as long as reading."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _first(complaints: list[str]) -> list[str]:
    more = len(complaints) - _NAMED
    return [*complaints[:_NAMED], f"and {more} more"] if more > 0 else complaints


def _complaints(kind: type[Any], error: ValidationError) -> list[str]:
    complaints: list[str] = []
    unknown: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for detail in error.errors():
        place = _place(kind, detail["loc"])
        if detail["type"] in _UNKNOWN and place.instead:
            complaints.append(f"{place.name}: there is no such field; {place.instead}")
        elif detail["type"] in _UNKNOWN:
            unknown.setdefault((place.parent, place.siblings), []).append(place.last)
        else:
            complaints.append(_complaint(place, dict(detail)))
    return [*(_no_fields(parent, names, siblings) for (parent, siblings), names in unknown.items()), *complaints]


def _no_fields(parent: str, names: list[str], siblings: tuple[str, ...]) -> str:
    dotted = ", ".join(_first([f"{parent}{name}" for name in names]))
    are = "is no such field" if len(names) == 1 else "are no such fields"
    owner = f" of {parent.rstrip('.')}" if parent else ""
    meant = did_you_mean(names[0], siblings) if len(names) == 1 else ""
    return f"{dotted}: there {are}; the fields{owner} are {', '.join(siblings)}{meant}"


def _complaint(place: _Place, detail: dict[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _MISSING:
        advice = f"; {place.if_missing}" if place.if_missing else ""
        return f"{place.name}{'.mode' if kind == 'union_tag_not_found' else ''} is missing{advice}"
    if kind in _SENTENCES:
        return f"{place.name}{_SENTENCES[kind]}{detail['msg'].removeprefix('Value error, ')}"
    name, value = place.name, detail["input"]
    if kind == "union_tag_invalid":
        name, value = f"{name}.mode", context["tag"]
    text = MASK if place.hidden or context.get("hidden") else shown(value)
    pattern = _ALLOWED.get(kind)
    return f"{name} is {text}; allowed is {pattern.format(**context) if pattern else detail['msg']}"


@dataclass(frozen=True)
class _Place:
    """The place of one of pydantic's errors: its dotted name, its parent's dotted name, and the parent's fields.

    `if_missing` is what to write there, if a declaration must choose, and `instead` what to write instead of it.
    """

    parent: str
    last: str
    siblings: tuple[str, ...]
    hidden: bool
    if_missing: str = ""
    instead: str = ""

    @property
    def name(self) -> str:
        return self.parent + self.last if self.parent or self.last else "it"


def _place(kind: type[Any], loc: tuple[int | str, ...]) -> _Place:
    """Follow `loc` through the types. A union's tag in it is not a field; everything below a `repr=False` is hidden."""
    names: list[str] = []
    hidden = False
    kinds: tuple[type[Any], ...] = (kind,)
    owners = kinds
    for part in map(str, loc):
        if part.startswith("<"):
            # Pydantic's name for the kind of value; the message leaves it out.
            continue
        owners = tuple(owner for owner in kinds if part in _fields(owner))
        tagged = tuple(owner for owner in kinds if part in _tags(owner))
        if tagged and (len(kinds) > 1 or not owners):
            kinds = owners = tagged
            continue
        names += [printable(without_secrets(part[: _SHOWN * 4]))[:_SHOWN] or "''"] if part != "[key]" else []
        hidden = hidden or (any(not _fields(owner)[part] for owner in owners) if owners else is_secret(part))
        owners, kinds = owners or kinds, tuple(_below(owners, part)) if owners else kinds
    siblings = tuple(name for owner in owners for name in _fields(owner))
    last = names[-1] if names else ""
    advice = next((advice for owner in owners if (advice := _if_missing(owner, last))), "")
    instead = next((words for owner in owners if (words := getattr(owner, INSTEAD, {}).get(last))), "")
    return _Place("".join(f"{name}." for name in names[:-1]), last, siblings, hidden, advice, instead)


def _fields(kind: type[Any]) -> dict[str, bool]:
    """Return the fields of `kind`, and for each whether it may be shown."""
    if issubclass(kind, BaseModel):
        return {name: field.repr for name, field in kind.model_fields.items()}
    return {field.name: field.repr for field in fields(kind)}


def _if_missing(kind: type[Any], name: str) -> str:
    if issubclass(kind, BaseModel):
        return ""
    return next((str(field.metadata.get(IF_MISSING, "")) for field in fields(kind) if field.name == name), "")


def _tags(kind: Any) -> frozenset[str]:
    hints = _hints(kind).values()
    return frozenset(value for hint in hints if get_origin(hint) is Literal for value in get_args(hint))


def _below(owners: Iterable[Any], name: str) -> Iterator[type[Any]]:
    for owner in owners:
        yield from _dataclasses(_hints(owner)[name])


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _dataclasses(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and (is_dataclass(hint) or (get_origin(hint) is None and issubclass(hint, BaseModel))):
        yield hint
    for part in get_args(hint):
        yield from _dataclasses(part)
