"""The planted defects of `tests/mutants` fit the code as it is."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.planting import CHECKOUT, BrokenMutant, Mutant, all_mutants

MUTANTS = all_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_planted(mutant: Mutant) -> None:
    source = (CHECKOUT / mutant.file).read_text()
    assert mutant.planted_in(source) != source


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_that_catch_a_mutant_exist(mutant: Mutant) -> None:
    assert bool(mutant.caught_by) is not bool(mutant.equivalent)
    for argument in mutant.caught_by:
        file, *names = argument.partition("[")[0].split("::")
        source = (CHECKOUT / file).read_text()
        assert all(f" {name}(" in source or f"class {name}:" in source for name in names)


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1] == []


@pytest.mark.parametrize("times", [0, 2])
def test_a_mutant_whose_place_is_not_found_once_is_refused(times: int) -> None:
    with pytest.raises(BrokenMutant, match=f"its old text occurs {times} times in some.py"):
        Mutant("a promise is broken", "some.py", "alive", "dead").planted_in("alive = True\n" * times)


def test_a_mutant_that_is_no_python_is_refused() -> None:
    with pytest.raises(BrokenMutant, match="does not compile"):
        Mutant("a promise is broken", "some.py", "alive = True", "alive =").planted_in("alive = True\n")
