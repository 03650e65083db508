"""A name means one thing: a reader who knows it from one file knows it in the next one, too."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "airflow_kstream"
# They are programs of their own; what runs on a cluster carries copies.
APART = {"demo", "minicluster", "jobs"}


def test_no_public_class_has_the_name_of_another_one() -> None:
    """Give the one that is used less a noun that says more."""
    named = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE)
        for node in ast.parse(path.read_text()).body if module.parts[0] not in APART else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named[node.name].append(str(module))
    assert {name: modules for name, modules in named.items() if len(modules) > 1} == {}
