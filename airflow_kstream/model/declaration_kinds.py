"""The kinds of files that people write for streams, tickets, leases and tokens: all faults of a file at once, and the
JSON schema of each kind, for editors.

A schema is made from the types that the reader itself uses, so it can't drift. It says less than the reader, which also
compares fields, looks for secrets and knows Spark's confs. What the reader takes, a schema refuses in these cases
alone: numbers, true and false in quotes, and one text for a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from enum import EnumType
from functools import partial, reduce
from inspect import cleandoc
from itertools import permutations
from operator import or_
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from airflow_kstream.model.airflow_options import options_of, require_no_templates
from airflow_kstream.model.clusters.hdfs_path import is_below, plain_path
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.forms import Said, default_text
from airflow_kstream.model.kerberos.declarations import TicketDeclaration, TokenDeclaration
from airflow_kstream.model.leases.requests import LeaseDeclaration
from airflow_kstream.model.secrets import require_no_literals_in
from airflow_kstream.model.streams.stream import SPECS, StreamSpec, require_named_after
from airflow_kstream.model.yaml_text import read_mapping

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
        if tags := [name for name, says in fields.items() if "const" in says]:
            made["required"] = [*made.get("required", ()), *tags]
        for name, says in fields.items():
            words = [*_said_of(schema["cls"], name), says.get("description", "")]
            if said := " ".join(filter(None, words)) or _said_by_its_kind(schema["cls"], name):
                says["description"] = said
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


_Check = Callable[[], object]
_FILESYSTEM = re.compile("hdfs://[^/]+")


@dataclass(frozen=True)
class DeclarationKind:
    """A kind of file: what it declares, its own reader, and what is checked of a file that this reader refuses.

    `by` are a field that names one of several types, and those by its values. `in_folder` are the further checks of a
    file that a shipped DAG reads, from its fields and its name without suffix. `alone` are the folders on HDFS that
    what it declares has to itself.
    """

    type: type[Any]
    read: Callable[[Mapping[str, Any]], Any]
    raw: Callable[[Mapping[str, Any]], object] = lambda fields: None
    in_folder: tuple[Callable[[Mapping[str, Any], str], object], ...] = ()
    by: tuple[str, Mapping[str, Any]] | None = field(default=None, hash=False)
    alone: Callable[[Any], tuple[str, ...]] = lambda declared: ()

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, for editors."""
        return schema_by(*self.by) if self.by else schema_of(self.type)

    def faults(self, text: str, stem: str | None = None) -> tuple[str, ...]:
        """Return every fault of a file, none if it is right; `stem` is its name if a folder of declarations has it."""
        try:
            fields = read_mapping(text)
        except InvalidInput as error:
            return error.faults
        checks: list[_Check] = [lambda: self.read(fields), lambda: self.raw(fields)]
        if stem is not None:
            checks += [lambda: require_no_templates(fields), *(partial(more, fields, stem) for more in self.in_folder)]
        # One secret is a fault for the reader, and for the check of the raw fields.
        return tuple(dict.fromkeys(fault for check in checks for fault in _faults(check)))

    def shared(self, texts: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Return the faults that files of one folder have together, by their names; a wrong file has none."""
        # A thousand files are a million pairs.
        folders = [(name, each, plain_path(each)) for name, text in texts.items() for each in self._alone(text)]
        found: dict[str, tuple[str, ...]] = {}
        for (name, folder, ours), (other, theirs, its) in permutations(folders, 2):
            nested = name != other and (is_below(ours, its) or is_below(its, ours))
            if nested and _may_be_one_filesystem(folder, theirs):
                fault = f"checkpoints: {folder} and {theirs} of {other} lie in one another"
                found[name] = (*found.get(name, ()), fault)
        return found

    def _alone(self, text: str) -> tuple[str, ...]:
        try:
            return self.alone(self.read(read_mapping(text)))
        except InvalidInput:
            return ()


def _may_be_one_filesystem(one: str, other: str) -> bool:
    """Return False if both name one, and not the same; a folder that names none lies on the connection's."""
    return len({match[0] for path in (one, other) if (match := _FILESYSTEM.match(path))}) < 2


def _faults(check: _Check) -> Iterator[str]:
    try:
        check()
    except InvalidInput as error:
        yield from error.faults


def _require_its_name(fields: Mapping[str, Any], stem: str) -> None:
    if "name" in fields:
        require_named_after(fields["name"], stem)


def _require_options(fields: Mapping[str, Any], stem: str) -> None:
    options_of(fields)


STREAMS = DeclarationKind(
    StreamSpec,
    StreamSpec.from_mapping,
    require_no_literals_in,
    (_require_its_name, _require_options),
    ("engine", {engine.value: spec for engine, spec in SPECS.items()}),
    lambda spec: spec.checkpoints,
)
LEASES = DeclarationKind(LeaseDeclaration, LeaseDeclaration.from_mapping)
TICKETS = DeclarationKind(TicketDeclaration, TicketDeclaration.from_mapping)
TOKENS = DeclarationKind(TokenDeclaration, TokenDeclaration.from_mapping)
