"""Values of the house with a field changed, whichever of their groups has it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")


def changed(value: T, **changes: object) -> T:
    """Return the value with these fields changed, each by its own name.

    Raises TypeError: when it has no such field, or more than one of its groups has one.
    """
    whole: dict[str, Any] = {}
    for name, change in changes.items():
        groups = [] if name in _names(value) else [one for one in _names(value) if name in _names(getattr(value, one))]
        if len(groups) > 1:
            raise TypeError(f"{name} is a field of {groups}; name one of them")
        if groups:
            group = groups[0]
            whole[group] = replace(whole.get(group, getattr(value, group)), **{name: change})
        else:
            whole[name] = change
    return replace(value, **whole)  # type: ignore[type-var]


def _names(value: Any) -> list[str]:
    return [field.name for field in fields(value)] if is_dataclass(value) else []
