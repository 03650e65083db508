"""Keeps streaming jobs alive on kerberized Hadoop, from Apache Airflow.

What a DAG's author uses is here by its name, and is imported at its first use: `dir(airflow_kstream)` lists it.

    from airflow_kstream import SparkStreamOperator, StreamSpec, TicketCredentials
"""

from __future__ import annotations

from functools import cache

__version__ = "0.1.0"


@cache
def _places() -> dict[str, str]:
    """Return the module of each public name, from `__init__.pyi`, which editors and type checkers read."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__all__":
        return sorted(_places())
    if name.startswith("_") or (module := _places().get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*_places(), *(name for name in globals() if name.startswith("__"))])
