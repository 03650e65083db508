"""What the words of `./kstream test` run."""

from __future__ import annotations

import pytest

from tests.__main__ import chosen, left_out, words_about
from tests.tiers import SLOW, SMALL, rounds


def test_without_words_it_is_the_small_tier_which_names_what_it_leaves_out() -> None:
    assert chosen([]) == SMALL
    assert {part.name for part in left_out(SMALL)} == set(SLOW)


def test_the_small_tier_says_that_it_has_only_some_of_the_faults() -> None:
    said = {part.name: words_about(part) for part in left_out(SMALL)}
    assert said["faults"].startswith("only partly in this tier: faults (")
    assert said["lives"].startswith("not in this tier: lives (")


def test_slow_is_all_slow_parts_and_each_has_a_word() -> None:
    assert {name for part in chosen(["--slow"]) for name in part.name.split("-")} == set(SLOW)
    assert [chosen([f"--{name}"]) for name in SLOW] == [(part,) for part in SLOW.values()]


def test_parts_that_wait_do_so_together() -> None:
    faults, waiting = chosen(["--alerts", "--faults", "--stalls"])
    assert faults is SLOW["faults"]
    assert waiting.name == "stalls-alerts"
    assert waiting.command[-2:] == ("-m", "stalls or alerts")


def test_what_computes_runs_beside_what_waits() -> None:
    beside = {part.name: together[0].name for together in rounds(chosen(["--slow"])) for part in together[1:]}
    assert beside == {"simulations": "lives-stalls-predictions-alerts"}


def test_what_computes_runs_alone_without_such_a_part() -> None:
    assert rounds(chosen(["--faults", "--simulations"])) == [(SLOW["faults"],), (SLOW["simulations"],)]


def test_each_part_runs_once() -> None:
    for parts in (SMALL, chosen(["--slow"]), chosen(["--simulations", "--faults", "--mutants"])):
        assert sorted(part.name for together in rounds(parts) for part in together) == sorted(p.name for p in parts)


def test_other_arguments_are_handed_to_pytest_alone() -> None:
    (part,) = chosen(["tests/unit", "-k", "horizon", "-x"])
    assert part.command[1:] == ("-m", "pytest", "tests/unit", "-k", "horizon", "-x")


def test_a_slow_part_takes_no_arguments_of_pytest(capsys: pytest.CaptureFixture[str]) -> None:
    """They would leave tests out and look like the whole part."""
    with pytest.raises(SystemExit):
        chosen(["--faults", "-k", "horizon"])
    assert "-k horizon would change what --slow and its parts run" in capsys.readouterr().err
