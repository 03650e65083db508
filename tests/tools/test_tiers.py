"""What the words of `./kstream test` run, and what is said of it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.__main__ import Result, chosen, left_out, slowest, table
from tests.conftest import FOLDERS
from tests.tiers import IN_PROCESS, ON_ONE_CLUSTER, REAL, SLOW, SMALL, Part, Stage, rounds
from tests.times import Times, read_times


def test_without_words_it_is_the_small_tier_which_names_what_it_leaves_out() -> None:
    assert chosen([]) == SMALL
    assert set(left_out(SMALL)) == {"real", *SLOW}
    assert left_out(REAL) == left_out(tuple(SLOW.values())) == {}


def test_each_folder_belongs_to_one_tier() -> None:
    on_clusters = {stage.path.split("/")[1] for stage in ON_ONE_CLUSTER}
    small = [*IN_PROCESS, *on_clusters, "afterwards"]
    assert sorted([*small, "real", "slow", "tools"]) == sorted(FOLDERS)


def test_the_budgets_of_the_small_tier_leave_two_of_its_twelve_minutes_free() -> None:
    whole = sum(max(part.budget for part in together) for together in rounds(SMALL))
    assert whole <= 10 * 60
    assert all(part.budget >= sum(stage.budget for stage in part.stages) for part in SMALL)


def test_real_is_a_tier_of_its_own_and_goes_before_the_slow_parts() -> None:
    assert chosen(["--real"]) == REAL
    assert chosen(["--real", "--mutants"]) == (*REAL, SLOW["mutants"])


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


def test_what_needs_no_cluster_runs_beside_it_once_style_and_types_are_right() -> None:
    names = [[part.name for part in together] for together in rounds(SMALL)]
    assert names == [["ruff", "format", "mypy", "rooms"], ["cluster", "in-process"], ["secrets"]]


def test_what_computes_runs_alone_without_such_a_part() -> None:
    assert rounds(chosen(["--faults", "--simulations"])) == [(SLOW["faults"],), (SLOW["simulations"],)]


def test_each_part_runs_once() -> None:
    for parts in (SMALL, chosen(["--slow"]), chosen(["--simulations", "--faults", "--mutants"])):
        assert sorted(part.name for together in rounds(parts) for part in together) == sorted(p.name for p in parts)


def test_other_arguments_are_handed_to_pytest_alone() -> None:
    (part,) = chosen(["tests/unit", "-k", "horizon", "-x"])
    assert part.command[1:] == ("-m", "pytest", "tests/unit", "-k", "horizon", "-x")


@pytest.mark.parametrize("word", ["--faults", "--real"])
def test_a_tier_and_its_parts_take_no_arguments_of_pytest(capsys: pytest.CaptureFixture[str], word: str) -> None:
    """They would leave tests out and look like the whole part."""
    with pytest.raises(SystemExit):
        chosen([word, "-k", "horizon"])
    assert "-k horizon would change what a tier or a part of it runs" in capsys.readouterr().err


def test_the_table_shows_each_stage_beside_its_budget_and_the_slowest_tests(tmp_path: Path) -> None:
    (tmp_path / "times").mkdir()
    for part, seconds in {
        "a": {"tests/x/test_1.py::test_a": 7.0, "tests/x/test_2.py::test_b": 4.0},
        "b": {"b": 9},
    }.items():
        (tmp_path / "times" / part).write_text(json.dumps(seconds))
    times = read_times(tmp_path)
    whole = Part(
        "cluster",
        "servers",
        (),
        budget=30,
        stages=(Stage("tests/x", "all of x", 20), Stage("tests/x/test_2.py", "the second", 5)),
    )
    lines = shown(table([whole], [Result(whole, 1, 12)], times, 90))
    assert [row for row in lines if "cluster" in row] == ["cluster servers 12 s 30 s failed (1)"]
    assert [row for row in lines if "all of x" in row] == ["· all of x 11 s 20 s"]
    assert [row for row in lines if "the second" in row] == ["· the second 4 s 5 s"]
    assert "1.5 minutes in all" in lines
    assert [row.split()[0] for row in shown(slowest(times)) if row.endswith(" s")] == ["b", *sorted(times.seconds)[1:]]


def shown(what: object) -> list[str]:
    """Return the words of each line, without the table's lines."""
    text = StringIO()
    Console(file=text, width=200).print(what)
    return [" ".join(line.translate(str.maketrans("│┃", "  ")).split()) for line in text.getvalue().splitlines()]


def test_no_test_has_taken_any_time_where_none_ran(tmp_path: Path) -> None:
    assert read_times(tmp_path) == Times({})
