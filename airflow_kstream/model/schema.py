"""The JSON schema of a declaration, for editors: from the types that the reader itself uses, so that it can't drift.

A schema says less than the reader, which also compares fields, looks for secrets and knows Spark's confs. It never
refuses what an editor shows as the reader's own kind of value, with these exceptions: numbers, true and false in
quotes, and one text for a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import EnumType
from functools import reduce
from inspect import cleandoc
from operator import or_
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from airflow_kstream.model.forms import Said, default_text

_END_OF_SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z`])")
_PERIOD = re.compile(r"(?<=\.)\s+")
# JSON schema means ISO 8601 by it: P1D.
_OTHER_DURATIONS = "duration"


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON schema of this kind of declaration. Each field has its default, and the words of its class."""
    schema = TypeAdapter(kind).json_schema(schema_generator=_Editors)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def schema_by(field: str, kinds: Mapping[str, type[Any]]) -> dict[str, Any]:
    """Return the JSON schema of declarations whose `field` names their kind; where it is missing, the first is meant.

    An editor then knows the fields of that kind alone.
    """
    schema = TypeAdapter(reduce(or_, kinds.values())).json_schema(schema_generator=_Editors)
    whole: dict[str, Any]
    (_, whole), *others = ((name, {"$ref": f"#/$defs/{kind.__name__}"}) for name, kind in kinds.items())
    for name, kind in others:
        named: dict[str, Any] = {"properties": {field: {"const": name}}, "required": [field]}
        whole = {"if": named, "then": kind, "else": whole}
    return {"$schema": GenerateJsonSchema.schema_dialect, **whole, "$defs": schema["$defs"]}


class _Editors(GenerateJsonSchema):
    """Pydantic's schema in the words of declarations: durations like 90s, and no titles made of names."""

    def generate(self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        whole = super().generate(schema, mode)
        for part in _parts(whole):
            if part.get("format") == _OTHER_DURATIONS:
                # A number is one of seconds.
                part |= {"type": [part.pop("type"), "number"], "minimum": 0}
                del part["format"]
            if "patternProperties" in part:
                part.setdefault("additionalProperties", False)
        return whole

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        return {} if is_dataclass(dft) else default_text(dft)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        made = super().dataclass_schema(schema)
        fields = made.get("properties", {})
        # A field of one value tells kinds apart: without it, the reader could not know which is meant.
        if tags := [name for name, field in fields.items() if "const" in field]:
            made["required"] = [*made.get("required", ()), *tags]
        for name, field in fields.items():
            words = [*_said_of(schema["cls"], name), field.get("description", "")]
            if said := " ".join(filter(None, words)) or _said_by_its_kind(schema["cls"], name):
                field["description"] = said
        return made


def _said_of(kind: type[Any], name: str) -> Iterator[str]:
    """Yield the words for a field: those beside it, or the sentences of the class's docstring that name it.

    Where that says nothing, the class above has the field, too.
    """
    hint = get_type_hints(kind, include_extras=True).get(name)
    if beside := [said.help for said in getattr(hint, "__metadata__", ()) if isinstance(said, Said)]:
        yield from beside
        return
    for each in kind.__mro__:
        named = [words for words in _END_OF_SENTENCE.split(_prose(each)) if _names(words, name)]
        if named:
            yield from (words.rstrip(":") for words in named)
            return


def _names(sentence: str, field: str) -> bool:
    return re.search(rf"`(?:\w+\.)?{field}(?::[^`]*)?`", sentence) is not None


def _said_by_its_kind(kind: type[Any], name: str) -> str:
    """Return the first sentence of each of our classes that the field may hold."""
    hint = get_type_hints(kind).get(name)
    classes: list[Any] = [each for each in (hint, *get_args(hint)) if is_dataclass(each) or isinstance(each, EnumType)]
    return " ".join(_PERIOD.split(_prose(each))[0] for each in classes)


def _prose(kind: type[Any]) -> str:
    """Return a class's docstring in one line, without its examples, which are indented."""
    paragraphs = cleandoc(kind.__doc__ or "").split("\n\n")
    return " ".join(" ".join(words.split()) for words in paragraphs if not words.startswith((" ", "Example::")))


def _parts(value: object) -> Iterator[dict[str, Any]]:
    """Yield each mapping in a schema."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)
