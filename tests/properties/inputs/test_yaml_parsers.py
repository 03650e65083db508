"""Declarations mean the same to both of PyYAML's parsers: libyaml's, and the one in Python where that is missing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_kstream.model import yaml_text
from airflow_kstream.model.errors import InvalidInput

# What YAML gives a meaning, and what people write between it.
_PIECES = (
    *("name", "orders", "a", "b", "1", "3.10", "no", "true", "null", "~", "12:30", "0600", "ü", "\U0001f600", "%"),
    *(": ", ":", "- ", "-", ", ", "[", "]", "{", "}", "\n", "\n  ", "\n    ", " ", "\t", "#", " # why\n", "? ", "?"),
    *("'", '"', "''", '\\"', "\\n", "\\u00e9", "|\n  ", ">-\n  ", "&x ", "*x", "<<: ", "!!str ", "!x ", "! "),
    *("---\n", "...\n", "%YAML 1.1\n", "\r\n", "\r", "\x85", "\u2028", "\ufeff", "\0", "\x07"),
)
_SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=12)
_DOCUMENTS = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_size=5,
)
_STYLES = st.sampled_from([None, "'", '"', "|", ">"])


def parsed(text: str, fast: type[Any]) -> object:
    with pytest.MonkeyPatch.context() as patch:
        # It is chosen at import, by what PyYAML was built with on this machine.
        patch.setattr(yaml_text, "_FAST", fast)
        try:
            return yaml_text.read_mapping(text)
        except InvalidInput:
            return "refused"


def require_alike(text: str) -> object:
    in_c, in_python = parsed(text, yaml.CSafeLoader), parsed(text, yaml.SafeLoader)
    assert in_c == in_python, text
    assert repr(in_c) == repr(in_python)
    return in_c


def test_libyaml_is_here_and_used() -> None:
    """Else the test would compare a parser with itself."""
    assert yaml_text._FAST is yaml.CSafeLoader


@settings(max_examples=500)
# What only libyaml reads, or reads as something else.
@example("~\t")
@example("{1? }\n")
@example("{'why?': 1? }\n")
@example('{"\\x3f": 1? }\n')
@example("- 'why?'\n- [\n")
@example("\r\ufeff&x a:")
@given(st.lists(st.sampled_from(_PIECES), max_size=25).map("".join))
def test_any_text_is_read_alike_or_refused_alike(text: str) -> None:
    require_alike(text)


@given(_DOCUMENTS, _STYLES, st.sampled_from([True, False, None]), st.integers(20, 200))
def test_any_mapping_however_it_is_written_is_read_alike(
    document: dict[str, Any], style: str | None, flow: bool | None, width: int
) -> None:
    text = yaml.safe_dump(document, default_style=style, default_flow_style=flow, width=width, allow_unicode=True)
    require_alike(text)
