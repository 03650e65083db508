"""Templates in declarations of the shipped DAGs, whose authors are not to compute anything on a worker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_kstream.model.errors import InvalidInput

_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
# Airflow renders none of these with a task's own context: a notifier gets its event, or what its callback is called
# with. The executor's pod is rendered by nobody.
_OF_AIRFLOW = frozenset({"notify", "callbacks", "executor_config"})
# Of a long list the first few say enough.
_NAMED = 5


def require_no_templates(declaration: Mapping[str, Any]) -> None:
    """Check that nothing of a declaration is a template, but in what notifiers get.

    Airflow would render it with all that a worker can look up, passwords of connections among it, into command lines
    and pages. Raises InvalidInput: when something is; it names the places.
    """
    places = list(_places({name: value for name, value in declaration.items() if name != "notify"}))
    if places:
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        raise InvalidInput(
            f"{', '.join(places[:_NAMED])}{more}: a template, which is rendered in `notify` and `airflow.callbacks` "
            "alone. Write the value itself; a secret as {secret: conn:ID} in conf or deploy.environment; for what has "
            "to be computed, SparkStreamOperator in a DAG of your own takes templates"
        )


def is_template(text: str) -> bool:
    """Return whether Airflow's renderer would compute something in this text."""
    return _TEMPLATE.search(text) is not None


def _places(value: object, place: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            here = f"{place}.{name}" if place else str(name)
            if place == "airflow" and name in _OF_AIRFLOW:
                continue
            if is_template(str(name)):
                yield f"a name in {place or 'the declaration'}"
            yield from _places(item, here)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _places(item, f"{place}.{number}")
    elif isinstance(value, str) and is_template(value):
        yield place
