"""One YAML document as people write a declaration: a mapping, read strictly and within limits.

Only `null`, `true`, `false` and decimal integers are more than text. The field decides the rest: a version `3.10`, a
time `12:30`, a mode `0600` and the country `no` stay as written. Nothing here recurses, and an alias counts as much as
the value it stands for: no text can exhaust the stack or the memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from airflow_kstream.model.errors import InvalidInput

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 20
MAX_VALUES = 100_000

# libyaml's parser if PyYAML was built with it: ten times as fast.
_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Where libyaml reads something else than PyYAML's own parser, or reads what that refuses.
_DISPUTED = re.compile("[\t\ufeff]")
# They surely read it alike inside of quotes alone.
_QUESTION_MARK = "?"
_QUOTES = {"'", '"'}
_CONSTANTS = {"": None, "~": None, **dict.fromkeys(("null", "Null", "NULL"))}
_CONSTANTS |= {**dict.fromkeys(("true", "True", "TRUE"), True), **dict.fromkeys(("false", "False", "FALSE"), False)}
# Integers that str() returns as they were written.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_TEXT_TAGS = {None, "!", "tag:yaml.org,2002:str"}


def read_mapping(text: str) -> dict[str, Any]:
    """Read the one document of `text`; an empty one has no fields.

    Raises InvalidInput: in one line, when the text is not YAML or not a mapping, is too large or too deep, or has a
    duplicate key, a second document, a tag, or an alias to nothing or to a node that contains it.
    """
    if len(text) > MAX_BYTES:
        raise InvalidInput(f"it has {len(text)} characters; allowed are {MAX_BYTES}")
    try:
        document = _document(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"this is not YAML: {_in_one_line(error)}") from None
    except UnicodeError:
        raise InvalidInput("this is not YAML: it has half a surrogate pair; allowed is what UTF-8 can hold") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidInput(
            f"it is {'a list' if isinstance(document, list) else 'one value'}; allowed is a mapping of fields to values"
        )
    return document


def _document(text: str) -> Any:
    """Build the document from the events of libyaml's parser, unless PyYAML's own may see others."""
    if _DISPUTED.search(text) or (_QUESTION_MARK in text and not _quotes_all_question_marks(text)):
        return _Builder().build(text, yaml.SafeLoader)
    return _Builder().build(text, _FAST)


def _quotes_all_question_marks(text: str) -> bool:
    """Return True if libyaml's parser reads the text, and each of them is inside of quotes."""
    quoted = 0
    events: Iterable[Any] = yaml.parse(text, Loader=_FAST)
    try:
        for event in events:
            if getattr(event, "style", None) in _QUOTES:
                quoted += text.count(_QUESTION_MARK, event.start_mark.index, event.end_mark.index)
    except (yaml.YAMLError, UnicodeError):
        return False
    return quoted == text.count(_QUESTION_MARK)


def _in_one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return where + " ".join(str(problem).split())


@dataclass
class _Node:
    """A list or mapping that is being read. `size` and `height` are those of its content, with aliases written out."""

    value: Any
    line: int
    anchor: str | None
    size: int = 1
    height: int = 1
    key: str | None = None
    lines: dict[str, int] = field(default_factory=dict)
    merged: dict[str, Any] = field(default_factory=dict)

    def complete(self) -> Any:
        if self.merged:
            self.value = {**self.merged, **self.value}
        return self.value


@dataclass
class _Builder:
    """A builder of the value from the parser's events. `open` are the nodes around the current position."""

    open: list[_Node] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int, int]] = field(default_factory=dict)
    documents: int = 0
    document: Any = None

    def build(self, text: str, loader: type[Any]) -> Any:
        for event in yaml.parse(text, Loader=loader):
            handle = _HANDLERS.get(type(event))
            if handle:
                handle(self, event, event.start_mark.line + 1 if event.start_mark else 0)
        return self.document

    def begin_document(self, event: Any, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise InvalidInput(f"line {line}: a second document begins; allowed is one")

    def begin(self, event: Any, line: int) -> None:
        tag = str(event.tag or "")
        if tag not in {"", "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}:
            raise _no_tag(tag, line)
        if len(self.open) >= MAX_DEPTH:
            raise InvalidInput(f"line {line}: this is more than {MAX_DEPTH} levels deep")
        self._require_value_place(line)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.open.append(_Node(value, line, event.anchor))

    def end(self, event: Any, line: int) -> None:
        node = self.open.pop()
        value = node.complete()
        if node.anchor:
            self.anchors[node.anchor] = value, node.size, node.height
        self._add(value, node.line, node.size, node.height)

    def scalar(self, event: Any, line: int) -> None:
        plain = event.implicit[0] and event.tag is None
        if not plain and event.tag not in _TEXT_TAGS:
            raise _no_tag(str(event.tag), line)
        if self._at_key:
            self._begin_key(event.value, line, merge=plain and event.value == "<<")
            return
        value = _plain_value(event.value) if plain else event.value
        if event.anchor:
            self.anchors[event.anchor] = value, 1, 0
        self._add(value, line, 1, 0)

    def alias(self, event: Any, line: int) -> None:
        if event.anchor not in self.anchors:
            # It may be a password that begins so.
            why = "what follows * is the name of no anchor that ends before it; quote a text that begins with *"
            raise InvalidInput(f"line {line}: {why}")
        self._require_value_place(line)
        self._add(self.anchors[event.anchor][0], line, *self.anchors[event.anchor][1:])

    @property
    def _at_key(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1].value, dict) and self.open[-1].key is None

    def _require_value_place(self, line: int) -> None:
        if self._at_key:
            raise InvalidInput(f"line {line}: a list, a mapping or an alias stands where a key is expected")

    def _begin_key(self, key: str, line: int, *, merge: bool) -> None:
        node = self.open[-1]
        if key in node.lines and not merge:
            raise InvalidInput(f"line {line}: {key[:60]!r} is given twice; the first is in line {node.lines[key]}")
        node.key = key
        node.lines[key] = 0 if merge else line

    def _add(self, value: Any, line: int, size: int, height: int) -> None:
        if not self.open:
            self.document = value
            return
        node = self.open[-1]
        node.size += size
        node.height = max(node.height, height + 1)
        if node.size > MAX_VALUES or len(self.open) + height > MAX_DEPTH:
            raise InvalidInput(
                f"line {line}: with its aliases this is more than {MAX_VALUES} values or {MAX_DEPTH} levels"
            )
        if isinstance(node.value, list):
            node.value.append(value)
        else:
            self._set(node, value, line)

    def _set(self, node: _Node, value: Any, line: int) -> None:
        key, node.key = node.key or "", None
        if node.lines[key]:
            node.value[key] = value
            return
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, Mapping):
                raise InvalidInput(f"line {line}: << takes a mapping or a list of mappings")
            node.merged = {**source, **node.merged}


def _no_tag(tag: str, line: int) -> InvalidInput:
    # What stands after ! may be a password that begins so.
    named = "of a program's own, after !," if tag.startswith("!") else repr(tag[:60])
    more = "; quote a text that begins with !" if tag.startswith("!") else ""
    return InvalidInput(f"line {line}: the tag {named} is not allowed{more}")


def _plain_value(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


_HANDLERS: Mapping[type[yaml.Event], Callable[[_Builder, Any, int], None]] = {
    yaml.DocumentStartEvent: _Builder.begin_document,
    yaml.MappingStartEvent: _Builder.begin,
    yaml.SequenceStartEvent: _Builder.begin,
    yaml.MappingEndEvent: _Builder.end,
    yaml.SequenceEndEvent: _Builder.end,
    yaml.ScalarEvent: _Builder.scalar,
    yaml.AliasEvent: _Builder.alias,
}
