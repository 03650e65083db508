"""Values that can be read: those of many fields are made of groups, each a value of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import airflow_kstream

PACKAGE = Path(airflow_kstream.__file__).parent
WIDEST = 12
# People type their fields by these names, one level deep, in YAML, in Python or in Airflow's form of a connection.
TYPED_BY_PEOPLE = {
    *("StreamSpec", "FlinkStreamSpec", "Deploy"),
    *("Signature", "RecoveryRequest", "LeaseDeclaration", "ConnectionFields"),
}
# Not in the wheel.
_ELSEWHERE = {"demo", "minicluster"}


def classes(sources: Mapping[str, str]) -> Iterator[ast.ClassDef]:
    for source in sources.values():
        yield from (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))


def widths(sources: Mapping[str, str]) -> dict[str, int]:
    """Return how many annotated fields each class has, those of its bases among them."""
    own = {kind.name: sum(map(_is_field, kind.body)) for kind in classes(sources)}
    bases = {kind.name: [ast.unparse(base) for base in kind.bases] for kind in classes(sources)}

    def width(name: str) -> int:
        return own.get(name, 0) + sum(width(base) for base in bases.get(name, ()) if base != name)

    return {name: width(name) for name in own}


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and not ast.unparse(node.annotation).startswith("ClassVar")


def wheel() -> dict[str, str]:
    paths = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return {str(path): (PACKAGE / path).read_text() for path in paths if path.parts[0] not in _ELSEWHERE}


def test_no_value_is_wider_than_twelve_fields_but_those_that_people_type() -> None:
    """Make values of the fields that belong together; `model/plain.py: Group` keeps the JSON as it is."""
    assert {name for name, width in widths(wheel()).items() if width > WIDEST} == TYPED_BY_PEOPLE


def test_the_fields_of_a_base_count() -> None:
    source = "class Half:\n    a: int\n    LIMIT: ClassVar[int] = 3\n\nclass Whole(Half):\n    b: int\n    c: int = 0\n"
    assert widths({"": source}) == {"Half": 1, "Whole": 3}
