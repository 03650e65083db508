"""Findings of the simulation as their shortest histories: random ones found each, in the number that its test says.

A docstring names the point of the review, and what the supervisor believed when it was found. A history is at the head
of the story that a failure prints.
"""

from __future__ import annotations

import pytest

from tests.simulation.checks import (
    GRANTED_TWICE,
    HARMED,
    LOOP,
    NO_FENCE,
    NOTHING_RAN,
    STUCK,
    TWO_WRITERS,
    WORD_LOST,
)
from tests.simulation.history import History, run
from tests.simulation.jobs import Pace
from tests.simulation.plans import Happening, Plan

SLOW_TRIGGER = Pace(trigger=300.0, batch=4.0)


def holds(promise: str, plan: Plan) -> History:
    history = run(plan)
    assert promise not in history.promises, str(history)
    return history


def test_a_slow_job_by_hand_on_the_checkpoint_gets_no_second_writer() -> None:
    """A1: a checkpoint that was silent for 30 s counted as abandoned."""
    holds(
        TWO_WRITERS,
        Plan("by hand", (Happening("job by hand", at=1.0),), pace=SLOW_TRIGGER, keepers=((100.0, "/kstream"),)),
    )


def test_two_installations_do_not_write_one_checkpoint() -> None:
    """A1: another installation's claims lie in another state_dir, and nothing owned a checkpoint."""
    keepers = ((0.0, "/kstream"), (100.0, "/another"))
    holds(TWO_WRITERS, Plan("two installations", pace=SLOW_TRIGGER, keepers=keepers))


def test_a_driver_on_a_lost_node_plans_no_batch_beside_its_successor() -> None:
    """A1: YARN's word about a lost node and 30 s of silence proved death."""
    cut = Happening("node cut off", at=200.0, seconds=2400.0)
    holds(TWO_WRITERS, Plan("lost node", (cut,), pace=Pace(120.0, 4.0), helper=False))


def test_a_driver_that_is_given_up_before_its_node_has_no_successor_yet() -> None:
    """The node counted as running for some minutes more, so 30 s without input proved its driver's death."""
    cut = Happening("node cut off", at=200.0, seconds=2400.0, number=190)
    holds(TWO_WRITERS, Plan("lost later", (cut,), pace=Pace(20.0, 4.0, idle=900.0, busy=11), helper=False))


def test_a_restart_on_a_node_that_nobody_misses_yet_brings_no_second_writer() -> None:
    """The kill counts at once, and reaches no node that is cut off: it is LOST only ten minutes later."""
    cut, asked = Happening("node cut off", at=200.0, seconds=1500.0, number=190), Happening("restart", at=300.0)
    history = run(Plan("unmissed", (cut, asked), pace=Pace(20.0, 4.0, idle=900.0, busy=11), helper=False))
    assert not history.violations, str(history)


def test_a_node_behind_a_firewall_that_yarn_hears_from_costs_no_twenty_minutes() -> None:
    dies = Happening("driver dies", at=600.0)
    holds(NOTHING_RAN, Plan("firewall", (dies,), firewall=True, helper=False, longest_gap=300.0, ends=1800.0))


def test_a_deposed_resourcemanager_costs_no_healthy_generation_its_fence() -> None:
    """A2: the first ResourceManager that said ACTIVE was believed."""
    wakes_late = Happening("ResourceManager wakes late", at=60.0, seconds=800.0, number=60)
    crash = Happening("crash of", at=861.0, who="keeper1")
    holds(NO_FENCE, Plan("two actives", (wakes_late, crash), keepers=((100.0, "/kstream"),)))


def test_one_claim_is_granted_once_behind_httpfs() -> None:
    """A3: RENAME over HttpFS answers 200 to both, and was believed."""
    holds(GRANTED_TWICE, Plan("httpfs", httpfs=True, keepers=((0.0, "/kstream"), (0.05, "/kstream"))))


def test_a_second_word_of_a_person_counts_behind_httpfs() -> None:
    """A3: RENAME over HttpFS answers 200 and overwrites nothing, and was believed."""
    words = (Happening("start", at=200.0), Happening("stop", at=400.0))
    history = run(Plan("httpfs words", words, httpfs=True))
    assert not history.promises & {WORD_LOST, STUCK}, str(history)


def test_a_strangers_copy_of_our_tags_kills_nothing_of_ours() -> None:
    """A4: tags were believed regardless of the user who set them."""
    holds(HARMED, Plan("copied tags", (Happening("stranger's tags", at=300.0, seconds=86400.0, number=1),)))


def test_a_strangers_generation_keeps_no_dead_stream_dead() -> None:
    """A4: an application of a higher generation was waited for without end."""
    tags = Happening("stranger's tags", at=300.0, seconds=5.0, number=999999)
    holds(STUCK, Plan("future tags", (tags, Happening("driver dies", at=600.0)), ends=900.0, patience=1500.0))


def test_a_job_that_dies_at_each_start_is_not_restarted_all_the_time() -> None:
    """A9: an error of the job's own that looks like a dead token restarted it at once, for ever."""
    holds(LOOP, Plan("failing job", dies_of="Token has expired (JWT)", ends=2400.0, concludes=False))


def test_a_job_that_dies_at_each_start_is_started_ever_less_often() -> None:
    """A9: with pauses that double up to half an hour, and a breaker after three alike over an hour."""
    history = run(Plan("failing job", dies_of="java.lang.OutOfMemoryError", ends=9000.0, concludes=False))
    assert not history.violations, str(history)
    assert history.submissions <= 14


def test_a_job_that_dies_for_half_a_day_keeps_to_its_budget() -> None:
    """A9: 121 applications in two hours. Its keeper's process dies now and then, and a second one looks on."""
    crashes = tuple(Happening("crash of", at=at, who="keeper1") for at in (5000.0, 20000.0))
    beside = ((0.0, "/kstream"), (40.0, "/kstream"))
    plan = Plan("failing all day", crashes, dies_of="Error: 7", ends=45000.0, keepers=beside, concludes=False)
    history = run(plan)
    assert not history.violations, str(history)
    assert 10 <= history.submissions <= 20


@pytest.mark.parametrize("read", [1, 2, 3])
def test_a_lost_reply_after_the_claim_costs_no_ten_minutes(read: int) -> None:
    """A10: the owner forgot that the claim was its own."""
    lost = Happening("reply lost", who="keeper1", behind="gen-000001", after=read)
    holds(NOTHING_RAN, Plan("lost reply", (lost,), longest_gap=300.0, ends=1200.0))


def test_a_hold_beside_a_request_to_restart_is_not_overwritten() -> None:
    """A11: the desired state was read, changed and written without a condition."""
    slow = Happening("freeze before", who="person1", behind="MKDIRS", seconds=30.0)
    holds(WORD_LOST, Plan("two words", (Happening("restart", at=300.0), Happening("hold", at=310.0), slow)))


def test_a_resourcemanager_whose_clock_is_behind_gets_time_to_recover() -> None:
    """A14: a ResourceManager's uptime was measured by two clocks."""
    restarts = Happening("ResourceManager restarts", at=900.0, seconds=100.0)
    holds(NO_FENCE, Plan("skewed", (restarts,), skews=(-150.0, -150.0, 0.0, 0.0)))


def test_a_checkpoint_that_is_lost_under_a_running_batch_blinds_no_watcher(caplog: pytest.LogCaptureFixture) -> None:
    """A commit whose plan was gone made the look fail, as long as no other batch was planned."""
    lost = Happening("checkpoint lost", at=125.0)
    history = run(Plan("lost in a batch", (lost,), pace=Pace(20.0, 15.0, idle=900.0), ends=900.0))
    assert not history.violations, str(history)
    assert "look at a stream failed" not in caplog.text


def test_a_broken_declaration_leaves_its_stream_running_as_it_was() -> None:
    """A restart submitted a job that dies at each start, and it was submitted again and again."""
    words = (Happening("broken declaration", at=600.0), Happening("restart", at=610.0))
    history = holds(STUCK, Plan("broken", words, ends=1500.0))
    assert not history.violations, str(history)
    assert history.submissions == 3


def test_what_arrives_while_its_claim_is_given_up_asleep_ends_and_is_followed() -> None:
    """The residual of a fence: its taker sleeps for ten minutes between its last look and the removal."""
    late = Happening("a submission arrives after its client died", number=1, seconds=5.0)
    asleep = Happening("freeze before", who="keeper1", behind="DELETE /kstream/orders-fdb55c8c/fence", seconds=700.0)
    history = run(Plan("asleep", (late, asleep)))
    assert not history.violations, str(history)
    assert "takes the fence of generation 1" in history.story.partition("generation 1 of /kstream/orders-fdb55c8c")[2]
    assert "generation 2 of /kstream/orders-fdb55c8c (0002): runs" in history.story
