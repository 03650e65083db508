"""The page of every field of a declaration, from the types that its reader holds it against."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.declaration_kinds import STREAMS
from airflow_kstream.model.finding import Baseline
from airflow_kstream.model.forms import Said
from airflow_kstream.model.kerberos.declarations import TicketDeclaration, TokenDeclaration
from airflow_kstream.model.leases.requests import LeaseDeclaration
from airflow_kstream.model.logs.signature import Signature
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec
from docs.site.markdown import page, table, word, words

READ = {
    "A stream": (StreamSpec, "`<connection id>/<stream>.yaml` in `[kstream] streams_folder`."),
    "A stream of Flink's": (
        FlinkStreamSpec,
        "The same files with `engine: flink`. Other fields are those of a stream.",
    ),
    "Stuck files of a cluster": (LeaseDeclaration, "`<connection id>.yaml` in `[kstream] leases_folder`."),
    "Tickets and keytabs of a cluster": (TicketDeclaration, "`<connection id>.yaml` in `[kstream] tickets_folder`."),
    "Tokens of a cluster": (TokenDeclaration, "`<connection id>.yaml` in `[kstream] tokens_folder`."),
    "Accepted findings": (
        Baseline,
        "`<connection id>.yaml` in `[kstream] doctor_folder`; `kstream doctor --baseline`.",
    ),
    "A signature of triage": (Signature, "Below its id in `signatures`, for `kstream triage --signatures`."),
    "The bounds of a connection": (Allow, "The field `allow` of a connection."),
}
_FOR_PROGRAMMERS = re.compile(r"\s(?=Example::|:param |Raises |The constructor checks nothing)")
_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false", timedelta: "a duration"}


def page_of_declarations() -> str:
    """Return the page."""
    return page(
        "Fields of declarations",
        "Declarations are YAML. An unknown field, a duplicate key and a value that is not allowed are refused by name "
        "before anything is touched. Durations are written like `90s`, `15m`, `6h`, `7d` or `1h30m`. Editors take "
        "[the JSON schema of a stream](stream.schema.json).",
        *(f"## {title}\n\n{where}\n\n" + "\n\n".join(_texts(kind)) for title, (kind, where) in READ.items()),
    )


def schema_of_streams() -> str:
    """Return what `kstream streams schema` prints."""
    return json.dumps(STREAMS.schema(), indent=2) + "\n"


def _texts(kind: type, path: str = "") -> Iterator[str]:
    """Yield the table of a class, and then those of the classes of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    base = next((each for each in kind.__mro__[1:] if each in {read for read, _ in READ.values()}), None)
    known = get_type_hints(base, include_extras=True) if base else {}
    own = [each for each in fields(kind) if each.init and (base is None or _is_own(kind, each, known, hints))]
    rows = (
        (word(path + each.name), _allowed(hints[each.name]), _default(each), _said(hints[each.name])) for each in own
    )
    yield _heading(kind, path) + _meaning(kind) + table(("field", "allowed", "default", "meaning"), rows)
    for each in own:
        for below in _classes(hints[each.name]):
            yield from _texts(below, f"{path}{each.name}.")


def _is_own(kind: type, field: Field[Any], known: Mapping[str, Any], hints: Mapping[str, Any]) -> bool:
    """Return whether a field is not the one of the class above, which has its own table."""
    return field.name in vars(kind).get("__annotations__", {}) or known.get(field.name) != hints[field.name]


def _heading(kind: type, path: str) -> str:
    """Return the heading of a class below another; one of several that a field may hold has its `mode` beside it."""
    mode = getattr(kind, "mode", "")
    return f"### {path.removesuffix('.')}{f': {mode}' if mode else ''}\n\n" if path else ""


def _meaning(kind: type) -> str:
    """Return the docstring up to what is for programmers alone."""
    return _FOR_PROGRAMMERS.split(inspect.getdoc(kind) or "")[0].strip() + "\n\n"


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for part in get_args(hint):
        yield from _classes(part)


def _said(hint: Any) -> str:
    return next((words(each.help) for each in getattr(hint, "__metadata__", ()) if isinstance(each, Said)), "")


def _allowed(hint: Any) -> str:
    """Return what a field may hold, in the reader's own words where it has some."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        told = [text for each in hint.__metadata__ if (text := _told(each))]
        inner = _allowed(parts[0])
        return told[-1] if told and inner in {*_PLAIN.values(), ""} else f"{inner}: {told[-1]}" if told else inner
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(text for part in parts if part is not type(None) and (text := _allowed(part))))
    if origin is Literal:
        return ", ".join(word(part) for part in parts)
    if origin is tuple:
        return f"a list of {_allowed(parts[0])}"
    if origin is not None and issubclass(origin, Mapping):
        return f"a mapping to {_allowed(parts[1])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(word(one.value) for one in hint)
    return "the fields below" if isinstance(hint, type) and is_dataclass(hint) else _PLAIN.get(hint, "")


def _told(validator: Any) -> str:
    """Return what `model.fields.must` says is allowed; nothing of any other validator."""
    check = getattr(validator, "func", None)
    return str(inspect.getclosurevars(check).nonlocals.get("allowed", "")) if inspect.isfunction(check) else ""


def _default(field: Field[Any]) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is None or is_dataclass(value) or value in ((), {}):
        return ""
    if isinstance(value, timedelta):
        return word(_duration(value))
    if isinstance(value, bool):
        return word(str(value).lower())
    return word(value.value if isinstance(value, Enum) else value)


def _duration(value: timedelta) -> str:
    """Return it in the largest unit that divides it."""
    seconds = value.total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"
