"""The page of operators, sensors, notifiers, hooks and triggers, from their docstrings and parameters."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from textwrap import dedent

from airflow.sdk import BaseHook, BaseNotifier, BaseOperator
from airflow.triggers.base import BaseEventTrigger

from airflow_kstream import hooks, notifications, operators, sensors, triggers
from docs.site.markdown import block, page, table, word

_PACKAGES = {
    "Operators": operators,
    "Sensors": sensors,
    "Notifiers": notifications,
    "Hooks": hooks,
    "Triggers of assets": triggers,
}
_FACES = BaseOperator, BaseHook, BaseNotifier, BaseEventTrigger
_FIELD = re.compile(r"^:(param (?P<name>\w+)|raises (?P<error>\w+)): (?P<text>.*?)(?=^:|\Z)", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"^Example::\n\n(?P<code>(?:(?: {4}.*)?\n)+)", re.MULTILINE)
_LITERAL = re.compile(r"``(.+?)``")


def faces(title: str) -> Iterator[type]:
    """Yield the classes of a group that a DAG's author uses."""
    package = _PACKAGES[title]
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            if kind.__module__ == found.name and issubclass(kind, _FACES) and not name.startswith("_"):
                yield kind


def page_of_faces() -> str:
    """Return the page."""
    return page(
        "Operators, sensors, notifiers, hooks, triggers",
        "Beside the parameters below, each takes those of Airflow's own base class.",
        *(f"## {title}\n\n" + "\n\n".join(map(_text, faces(title))) for title in _PACKAGES),
    )


def _text(kind: type) -> str:
    text = inspect.getdoc(kind) or ""
    fields = [match.groupdict() for match in _FIELD.finditer(text)]
    prose = _EXAMPLE.sub("", _FIELD.sub("", f"{text}\n"))
    example = _EXAMPLE.search(f"{text}\n")
    defaults = _defaults(kind)
    named = {field["name"]: field["text"] for field in fields if field["name"]}
    rows = ((word(name), _LITERAL.sub(r"`\1`", said), word(defaults.get(name, ""))) for name, said in named.items())
    raised = ((word(field["error"]), field["text"].removeprefix("when ")) for field in fields if field["error"])
    lines = f"from {kind.__module__} import {kind.__name__}"
    return "\n\n".join(
        part
        for part in (
            f"### {kind.__name__}",
            _LITERAL.sub(r"`\1`", prose).strip(),
            block(lines + ("\n\n" + dedent(example["code"]).rstrip() if example else ""), "python"),
            table(("parameter", "meaning", "default"), rows),
            table(("raises", "when"), raised),
        )
        if part
    )


def _defaults(kind: type) -> dict[str, str]:
    parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    return {each.name: repr(each.default) for each in parameters if each.default not in (inspect.Parameter.empty, None)}
