"""The planted defects of `tests/mutants` fit the code and the tests as they are."""

from __future__ import annotations

from collections import Counter

from tests.conftest import TESTS
from tests.mutants.planting import CHECKOUT, Mutant, all_mutants

MUTANTS = all_mutants()
# Folders that the default tier leaves out: a mutant that only they catch survives each change until the night.
LEFT_OUT = ("real", "slow", "tools")


def test_each_mutant_has_its_place_once() -> None:
    sources = {file: (CHECKOUT / file).read_text() for file in {mutant.file for mutant in MUTANTS}}
    lost = [mutant.name for mutant in MUTANTS if sources[mutant.file].count(mutant.old) != 1]
    assert lost == [], "write what stands there now as their old text"


def test_each_mutant_is_caught_by_tests_of_the_default_tier_that_exist() -> None:
    assert [mutant.name for mutant in MUTANTS if bool(mutant.caught_by) is bool(mutant.equivalent)] == []
    assert {mutant.name: missing for mutant in MUTANTS if (missing := missing_tests(mutant))} == {}


def missing_tests(mutant: Mutant) -> list[str]:
    return [test for test in mutant.caught_by if not exists(test)]


def exists(test: str) -> bool:
    """Return whether this argument of pytest names a test of the default tier, by the text of its file."""
    name, *inside = test.partition("[")[0].split("::")
    file = CHECKOUT / name
    if not file.is_file() or file.relative_to(TESTS).parts[0] in LEFT_OUT:
        return False
    source = file.read_text()
    return all(f" {part}(" in source or f"class {part}:" in source for part in inside)


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1] == []
