"""Generations whose tokens are replaced by pushes: when to push, what that costs an absence, and when to restart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import (
    applied_marker,
    generation_of_file,
    is_known_file,
    push_file,
    pushes,
    refused_marker,
    unpushed_marker,
)
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Push, Revoke, Settled, Step, Stop
from airflow_kstream.model.streams.stream import ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import RefreshPolicy
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.refresh import refreshed
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.yarn import (
    START,
    TICKET_SPEC,
    WEEK,
    SimulatedYarn,
    application,
    claim_of,
    watched,
)

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
SPEC = replace(TICKET_SPEC, credentials=TicketCredentials(refresh=True))
CLAIM = claim_of(SPEC, 1, START)
# What a planned restart without pushes would wait for, at the earliest.
OLD_PLAN = 0.65 * WEEK.max_lifetime


def push_at(moment: datetime, until: datetime | None = None, generation: int = 1) -> TokenPush:
    return TokenPush(generation, int(moment.timestamp() * 1000), until)


@dataclass
class Life:
    """A generation that runs, its driver, and a supervisor that looks each `pace` and does what it finds due.

    A driver that `answers` takes each push at once; `minted` is whether tokens can be made.
    """

    spec: StreamSpec = SPEC
    answers: bool = True
    minted: bool = True
    now: datetime = START
    end: datetime = START + WEEK.max_lifetime
    files: set[str] = field(default_factory=set)
    pushed: list[datetime] = field(default_factory=list)
    frozen_until: datetime | None = None
    state: ApplicationState = ApplicationState.RUNNING

    def look(self) -> Observation:
        yarn = SimulatedYarn(now=self.now, claims={1: CLAIM}, has_helper=True)
        yarn.applications = [(1, application(1, self.state))]
        yarn.files = {"gen-000001", "fence-000001-nonce1", "started-000001", *self.files}
        yarn.offsets = yarn.commits = {1: self.now}
        if self.frozen_until:
            yarn.freeze = Freeze(by="ann", reason="maintenance", until=self.frozen_until)
        return yarn.look()

    def step(self) -> Step:
        seen = self.look()
        return next_step(self.spec, seen, watched(seen), Mode.WATCH)

    def live(self, time: timedelta, pace: timedelta = 10 * MINUTE) -> Step:
        """Look and push until something else is due, for so long at most; return the last step."""
        ends = self.now + time
        step = self.step()
        while self.now < ends:
            step = self.step()
            if isinstance(step, Push):
                self._push(tokens=step.tokens)
            elif not isinstance(step, Settled):
                break
            assert self.now < self.end, f"its tokens ended at {self.end}"
            self.now += pace
        return step

    def _push(self, *, tokens: bool) -> None:
        made = push_at(self.now, self.now + WEEK.renew_interval if tokens else None)
        if tokens and not self.minted:
            self.files.add(unpushed_marker(made))
            return
        self.files.add(push_file(made))
        self.pushed += [self.now] if tokens else []
        if self.answers:
            self.files.add(applied_marker(made))
            self.end = made.until or self.end
            ended = [push for push in pushes(self.files, 1).pushed if _ended(push, self.now)]
            self.files -= {push_file(push) for push in ended}


def _ended(push: TokenPush, now: datetime) -> bool:
    return push.until is not None and push.until < now


def test_a_job_whose_tokens_are_pushed_lives_for_weeks() -> None:
    life = Life()
    assert isinstance(life.live(3 * WEEK.max_lifetime, pace=HOUR), Settled)
    # Half of the renew interval, less a tenth for the spread over a fleet.
    assert {after - before for before, after in pairwise(life.pushed)} <= {11 * HOUR, 12 * HOUR}


def test_the_launch_tokens_are_used_for_as_long_as_without_pushes() -> None:
    life = Life()
    life.live(10 * DAY)
    assert START + OLD_PLAN <= life.pushed[0] <= START + 0.75 * WEEK.max_lifetime + 10 * MINUTE


def test_the_first_push_asks_whether_the_driver_takes_any() -> None:
    step = Life().step()
    assert isinstance(step, Push)
    assert not step.tokens


def test_a_job_is_left_alone_until_its_driver_runs() -> None:
    life = Life()
    seen = life.look()
    unproven = replace(seen, files=seen.files - {"started-000001"}, checkpoints=())
    assert isinstance(next_step(SPEC, unproven, watched(unproven), Mode.WATCH), Settled)


def test_a_driver_that_answers_nothing_is_restarted_as_if_nothing_were_pushed() -> None:
    life = Life(answers=False)
    step = life.live(10 * DAY)
    assert isinstance(step, Stop)
    assert START + OLD_PLAN <= life.now <= START + 0.75 * WEEK.max_lifetime + 10 * MINUTE
    assert life.pushed == []


def test_a_driver_that_stops_answering_is_restarted_before_its_tokens_end() -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.answers = False
    step = life.live(2 * DAY)
    assert isinstance(step, Stop)
    assert HorizonReason.NOT_PUSHED in step.why
    assert HOUR <= life.end - life.now <= 0.4 * WEEK.renew_interval


def test_tries_in_vain_come_ever_less_often() -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    before = len(life.pushed)
    life.minted = False
    life.live(2 * DAY, pace=MINUTE)
    failed = pushes(life.files, 1).failed
    pauses = [after.at - one.at for one, after in pairwise(failed)]
    assert len(life.pushed) == before
    assert pauses[:3] == [5 * MINUTE, 10 * MINUTE, 20 * MINUTE]
    assert max(pauses) <= HOUR + MINUTE
    assert len(failed) < 12


@pytest.mark.parametrize("away", [HOUR, 6 * HOUR, 11 * HOUR])
def test_a_supervisor_that_was_away_for_less_than_the_tolerance_finds_it_alive(away: timedelta) -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.now += away
    assert life.now < life.end
    step = life.live(2 * DAY, pace=HOUR)
    assert isinstance(step, Settled)


@pytest.mark.parametrize("away", [18 * HOUR, 21 * HOUR])
def test_a_supervisor_that_was_away_while_pushes_were_due_pushes_before_it_restarts(away: timedelta) -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.now = life.pushed[-1] + away
    assert isinstance(life.step(), Push)
    assert isinstance(life.live(2 * DAY, pace=HOUR), Settled)


@pytest.mark.parametrize(("answers", "minted"), [(False, True), (True, False)], ids=["silent driver", "no tokens"])
def test_a_push_that_comes_late_delays_the_restart_for_its_answer_alone(*, answers: bool, minted: bool) -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    came_back = life.pushed[-1] + 18 * HOUR
    life = replace(life, now=came_back, answers=answers, minted=minted)
    assert isinstance(life.live(HOUR, pace=MINUTE), Stop)
    assert life.now - came_back == SPEC.refresh.confirm_within


def test_a_late_push_waits_for_a_resourcemanager_that_calls_a_running_job_accepted() -> None:
    """It does so until the job's ApplicationMaster has found it again."""
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.now, life.state = life.pushed[-1] + 18 * HOUR, ApplicationState.ACCEPTED
    assert isinstance(life.step(), Settled)
    life.state = ApplicationState.RUNNING
    assert isinstance(life.step(), Push)


def test_no_late_push_is_tried_when_its_answer_would_come_too_late() -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.now = life.end - HOUR - SPEC.refresh.confirm_within + MINUTE
    assert isinstance(life.step(), Stop)


def test_the_tolerance_is_what_an_absence_may_last() -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    seen = life.look()
    stands = refreshed(SPEC, seen, horizon_of(SPEC, seen))
    assert stands is not None
    assert stands.due is not None
    assert stands.tolerance == 12 * HOUR
    assert stands.restart_tolerance == 0.25 * WEEK.max_lifetime
    assert life.now + stands.due + stands.tolerance <= life.end
    assert stands.trouble == ""


def test_an_absence_to_be_tolerated_makes_pushes_come_earlier() -> None:
    spec = replace(SPEC, refresh=RefreshPolicy(tolerate_absence=20 * HOUR))
    life = Life(spec)
    life.live(8 * DAY, pace=HOUR)
    pauses = [after - before for before, after in pairwise(life.pushed)]
    assert max(pauses) <= 4 * HOUR


def test_where_pushes_cannot_tolerate_the_absence_the_planned_restart_stays() -> None:
    spec = replace(SPEC, refresh=RefreshPolicy(tolerate_absence=30 * HOUR))
    life = Life(spec)
    assert isinstance(life.live(10 * DAY, pace=HOUR), Stop)
    assert life.pushed == []
    seen = life.look()
    stands = refreshed(spec, seen, horizon_of(spec, seen))
    assert stands is not None
    assert "30h" in stands.trouble or "1d 6h" in stands.trouble


def test_a_frozen_cluster_gets_no_push() -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.frozen_until = life.now + 5 * DAY
    before = len(life.pushed)
    life.now += 13 * HOUR
    assert isinstance(life.step(), Settled)
    assert len(life.pushed) == before


def test_a_declaration_that_takes_it_back_concerns_the_next_generation() -> None:
    life = Life()
    life.live(8 * DAY, pace=HOUR)
    life.spec = replace(SPEC, credentials=TicketCredentials())
    assert isinstance(life.live(8 * DAY, pace=HOUR), Settled)


def test_what_a_person_pushed_by_hand_moves_the_horizon_and_nothing_follows_it() -> None:
    by_hand = push_at(START + 6 * DAY, START + 7 * DAY)
    life = Life(TICKET_SPEC, now=START + 6.1 * DAY, files={push_file(by_hand), applied_marker(by_hand)})
    seen = replace(life.look(), claim=claim_of(TICKET_SPEC, 1, START - DAY))
    ends = horizon_of(TICKET_SPEC, seen)
    assert ends is not None
    assert (ends.reason, ends.hard, ends.push) == (HorizonReason.NOT_PUSHED, by_hand.until, None)


def test_a_driver_that_refuses_is_a_trouble_after_a_while() -> None:
    life = Life()
    refused = push_at(START + HOUR, START + DAY)
    life.files = {push_file(push_at(START)), applied_marker(push_at(START))}
    life.files |= {push_file(refused), refused_marker(refused)}
    troubles = []
    for life.now in (START + HOUR + MINUTE, START + HOUR + 5 * MINUTE):
        stands = refreshed(SPEC, life.look(), None)
        troubles.append(stands.trouble if stands else None)
    assert troubles == ["", "it refused the tokens that were pushed last"]


def test_the_tokens_of_an_ended_generation_are_cancelled_after_its_logs() -> None:
    life = Life()
    life.live(6 * DAY, pace=HOUR)
    steps = []
    for waited in (14 * MINUTE, 16 * MINUTE):
        yarn = SimulatedYarn(now=life.now + waited, claims={2: claim_of(SPEC, 2, life.now)})
        ended = application(1, ApplicationState.FINISHED, finished=life.now)
        yarn.applications = [(1, ended), (2, application(2, ApplicationState.RUNNING, number=2))]
        yarn.files = {"gen-000002", "fence-000002-nonce2", *life.files}
        seen = yarn.look()
        steps.append(next_step(SPEC, seen, watched(seen), Mode.WATCH))
    assert isinstance(steps[0], Settled)
    assert isinstance(steps[1], Revoke)
    assert steps[1].generation == 1


def test_the_pushes_of_the_claimed_generation_count_whatever_a_later_one_left() -> None:
    seen = Life(files={push_file(push_at(START)), "started-000002"}).look()
    assert seen.generation == 2
    assert seen.pushes.pushed == (push_at(START),)


def test_the_files_of_pushes_are_known_and_belong_to_their_generation() -> None:
    push = push_at(START, START + DAY, generation=12)
    for name in (push_file(push), applied_marker(push), refused_marker(push), unpushed_marker(push)):
        assert is_known_file(name)
        assert generation_of_file(name) == 12
    assert is_known_file("tokens")
    assert pushes({push_file(push)}, 12).pushed == (push,)
    assert pushes({push_file(push)}, 1).pushed == ()


@pytest.mark.parametrize("credentials", [TicketCredentials(refresh=True), ProxyUserCredentials("alice", refresh=True)])
def test_tickets_and_proxy_users_can_be_refreshed(credentials: TicketCredentials | ProxyUserCredentials) -> None:
    spec = replace(SPEC, credentials=credentials)
    assert spec.checked() == spec


def test_a_keytab_needs_no_refresh() -> None:
    keytab = {"mode": "keytab", "principal": "streamer@EXAMPLE.COM", "refresh": True}
    with pytest.raises(InvalidInput, match=r"credentials\.refresh: there is no such field"):
        StreamSpec.from_mapping({**SPEC.to_mapping(), "credentials": keytab})
