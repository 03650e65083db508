"""What pydantic refused, in the words of whoever wrote the fields: YAML, a form, a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError

_IN_YAML = {
    "tuple_type": "allowed is a list",
    "dataclass_type": "allowed is a mapping of fields to values",
    "unexpected_keyword_argument": "there is no such field",
    "missing": "it is missing",
}


def field_errors(error: ValidationError) -> str:
    """Each wrong field by its dotted name, and why. Their values are left out, unless a check of ours names them."""
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {explain_error(item)}" for item in error.errors())


def explain_error(wrong: Mapping[str, Any]) -> str:
    """One of pydantic's errors."""
    return _IN_YAML.get(str(wrong["type"]), str(wrong["msg"]).removeprefix("Value error, "))
