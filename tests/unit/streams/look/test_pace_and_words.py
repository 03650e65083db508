"""What pace, freeze, hold, horizon and persons' words do together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.plan import Note, Phase, Settled, Step, Submit, Wait
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.ended_lives import BRISK
from tests.simulated.life import SPEC, Life
from tests.simulated.restarts import breaking, dead, noted, step
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, past_end, watched

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
CODE = "User class threw exception: java.lang.IllegalStateException: x"
BY_BOB = "Application application_1_0001 was killed by user bob at 10.0.0.7"


def backing_off() -> SimulatedYarn:
    yarn = dead(CODE, lived=10 * MINUTE)
    yarn.ends = [past_end(number - 8, START + number * MINUTE) for number in range(2, 9)]
    noted(yarn)
    return yarn


def breaker_open() -> SimulatedYarn:
    yarn = breaking(dead(CODE, commits=0))
    noted(yarn)
    return yarn


def killed() -> SimulatedYarn:
    yarn = dead(BY_BOB)
    noted(yarn)
    return yarn


def just_ended() -> SimulatedYarn:
    return dead(CODE)


def freeze(yarn: SimulatedYarn) -> None:
    yarn.freeze = Freeze(1, yarn.now + 30 * DAY, "ann", "an upgrade")


def hold(yarn: SimulatedYarn) -> None:
    yarn.desired = Desired(DesiredState.HELD, 0, "ann", yarn.now, "hands off")


def start(yarn: SimulatedYarn) -> None:
    yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", yarn.now)


def restart(yarn: SimulatedYarn) -> None:
    yarn.desired = Desired(DesiredState.RUNNING, 1, "ann", yarn.now)


def stop(yarn: SimulatedYarn) -> None:
    yarn.desired = Desired(DesiredState.STOPPED, 0, "ann", yarn.now)


def pass_its_horizon(yarn: SimulatedYarn) -> None:
    yarn.now += 8 * DAY


def say_nothing(yarn: SimulatedYarn) -> None:
    """Nobody says anything."""


def outcome(seen: Step) -> object:
    return seen.phase if isinstance(seen, Settled) else type(seen)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("state", "then", "expected"),
    [
        (backing_off, say_nothing, Phase.BACKING_OFF),
        (backing_off, start, Submit),
        (backing_off, restart, Submit),
        (backing_off, stop, Phase.STOPPED),
        (backing_off, hold, Phase.HELD),
        # A frozen stream's pause goes on: what waits for the freeze is only what is due.
        (backing_off, freeze, Phase.BACKING_OFF),
        (backing_off, pass_its_horizon, Submit),
        (breaker_open, say_nothing, Phase.BACKING_OFF),
        (breaker_open, hold, Phase.HELD),
        (breaker_open, start, Submit),
        (breaker_open, restart, Submit),
        (breaker_open, freeze, Phase.BACKING_OFF),
        (killed, freeze, Phase.KILLED),
        (killed, pass_its_horizon, Phase.KILLED),
        (killed, hold, Phase.HELD),
        (killed, restart, Submit),
        (killed, stop, Phase.STOPPED),
        # An end is recorded and told in a freeze, but not while a person has said hands off.
        (just_ended, freeze, Note),
        (just_ended, hold, Phase.HELD),
        (just_ended, stop, Phase.STOPPED),
        (just_ended, pass_its_horizon, Note),
        (just_ended, start, Submit),
    ],
)
def test_what_a_dead_stream_waits_for(
    mode: Mode, state: Callable[[], SimulatedYarn], then: Callable[[SimulatedYarn], None], expected: object
) -> None:
    yarn = state()
    then(yarn)
    assert outcome(step(yarn, mode)) == expected


@pytest.mark.parametrize("word", [start, restart])
@pytest.mark.parametrize("state", [backing_off, breaker_open, killed])
def test_a_word_during_a_freeze_is_carried_out_after_it(
    state: Callable[[], SimulatedYarn], word: Callable[[SimulatedYarn], None]
) -> None:
    yarn = state()
    freeze(yarn)
    word(yarn)
    assert outcome(step(yarn)) == Phase.FROZEN
    yarn.freeze = Freeze(2, yarn.now)
    assert isinstance(step(yarn), Submit)


def test_a_hold_while_the_breaker_is_open_ends_with_a_start() -> None:
    """Hold and start close the breaker: a person has looked."""
    yarn = breaker_open()
    hold(yarn)
    yarn.now += 10 * DAY
    assert outcome(step(yarn)) == Phase.HELD
    start(yarn)
    assert isinstance(step(yarn), Submit)


def test_a_freeze_past_the_horizon_ends_in_one_record_and_one_successor() -> None:
    yarn = dead("", lived=7 * DAY)
    freeze(yarn)
    assert noted(yarn).kind is EndKind.CREDENTIALS
    yarn.now += 10 * DAY
    frozen = step(yarn)
    assert outcome(frozen) == Phase.FROZEN
    yarn.freeze = Freeze(2, yarn.now)
    assert isinstance(step(yarn), Submit)
    assert [end.generation for end in yarn.ends] == [1]


class TestAnEndAndAWord:
    """The ResourceManager's clock says when an application ended, and the NameNode's when a person spoke."""

    SKEWS = (-5 * MINUTE, timedelta(), 5 * MINUTE)

    @staticmethod
    def killed(skew: timedelta) -> tuple[SimulatedYarn, datetime]:
        """Return a stream that bob killed five minutes ago, by a ResourceManager whose clock differs; and the end."""
        yarn = dead(BY_BOB)
        ended = yarn.now - 5 * MINUTE
        yarn.applications = [
            (number, replace(app, started=app.started and app.started + skew, finished=ended + skew))
            for number, app in yarn.applications
        ]
        return yarn, ended

    @staticmethod
    def step(yarn: SimulatedYarn, ended: datetime | None) -> Step:
        seen = replace(yarn.look(), yarn=replace(yarn.look().yarn, ended=ended))
        return next_step(TICKET_SPEC, seen, watched(seen), Mode.WATCH)

    @pytest.mark.parametrize("asked", [True, False])
    @pytest.mark.parametrize("skew", SKEWS)
    def test_a_start_before_the_end_is_no_answer_to_it(self, skew: timedelta, asked: bool) -> None:
        """Without the ResourceManager's time, the length of the life after the claim is enough."""
        yarn, ended = self.killed(skew)
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", ended - MINUTE)
        assert isinstance(self.step(yarn, ended if asked else None), Note)

    @pytest.mark.parametrize("skew", SKEWS)
    def test_a_start_after_the_end_is_its_answer(self, skew: timedelta) -> None:
        yarn, ended = self.killed(skew)
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", ended + MINUTE)
        assert isinstance(self.step(yarn, ended), Submit)

    def test_a_commit_after_the_word_shows_that_the_end_came_later(self) -> None:
        """Whatever the clocks say: both are the NameNode's times."""
        yarn, ended = self.killed(-5 * MINUTE)
        yarn.applications = [(number, replace(app, started=None)) for number, app in yarn.applications]
        yarn.offsets[9] = yarn.commits[9] = ended - MINUTE
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", ended - 2 * MINUTE)
        assert isinstance(self.step(yarn, ended - 4 * MINUTE), Note)

    def test_an_end_in_the_future_is_one_of_now(self) -> None:
        yarn, ended = self.killed(timedelta(days=1))
        start(yarn)
        assert isinstance(self.step(yarn, ended + DAY), Submit)

    def test_a_recorded_end_has_the_time_of_its_record(self) -> None:
        yarn, ended = self.killed(5 * MINUTE)
        note = self.step(yarn, ended)
        yarn.carry_out(note)
        yarn.now += MINUTE
        start(yarn)
        assert isinstance(self.step(yarn, None), Submit)


class TestWhoseClock:
    """A whole look: how long ago it ended is asked of the ResourceManager, once, until the end is recorded."""

    @pytest.mark.parametrize("skew", TestAnEndAndAWord.SKEWS)
    def test_the_resourcemanagers_times_are_made_the_namenodes(self, life: Life, skew: timedelta) -> None:
        asked = self.skewed(life, skew)
        life.begin()
        life.set_desired(DesiredState.RUNNING)
        life.clock.ahead += MINUTE
        life.yarn.end("application_1_0001", ApplicationState.KILLED, BY_BOB)
        self.shift(life, skew)
        assert life.reconcile(Mode.WATCH).phase is Phase.ENDED, "the word was for the stream as it ran"
        assert len(asked) == 1
        assert life.reconcile(Mode.WATCH).phase is Phase.KILLED
        assert len(asked) == 1, "the record has the time"

    @pytest.mark.parametrize("skew", TestAnEndAndAWord.SKEWS)
    def test_a_word_after_the_end_is_heard_before_anybody_saw_the_end(self, life: Life, skew: timedelta) -> None:
        self.skewed(life, skew)
        life.begin()
        life.yarn.end("application_1_0001", ApplicationState.KILLED, BY_BOB)
        self.shift(life, skew)
        life.clock.ahead += MINUTE
        life.set_desired(DesiredState.RUNNING)
        assert life.reconcile(Mode.WATCH).generation == 2

    @staticmethod
    def skewed(life: Life, skew: timedelta) -> list[datetime]:
        asked: list[datetime] = []

        def time_since(moment: datetime) -> timedelta:
            asked.append(moment)
            return life.clock.now() + skew - moment

        life.yarn.time_since = time_since  # type: ignore[method-assign]
        return asked

    @staticmethod
    def shift(life: Life, skew: timedelta) -> None:
        """Let the ResourceManager tell its own times."""
        for name, app in life.yarn.apps.items():
            assert app.started
            assert app.finished
            life.yarn.apps[name] = replace(app, started=app.started + skew, finished=app.finished + skew)


class TestASuccess:
    def test_is_waited_out_by_a_deferred_task(self, life: Life) -> None:
        """The watch follows what the ensure has begun, and does not call it an end."""
        self.succeed_often(life)
        assert life.reconcile(Mode.ENSURE).phase is Phase.BACKING_OFF
        assert not life.watch().calls_for_action
        life.clock.ahead += SPEC.failure.longest_backoff
        assert life.watch().calls_for_action
        assert life.reconcile(Mode.WATCH).generation == 8

    def test_is_followed_at_once_if_a_person_says_so(self, life: Life) -> None:
        self.succeed_often(life)
        life.reconcile(Mode.ENSURE)
        life.set_desired(DesiredState.RUNNING)
        assert life.reconcile(Mode.WATCH).generation == 8

    @staticmethod
    def succeed_often(life: Life) -> None:
        """Let seven generations succeed within a minute each."""
        life.run = replace(life.run, spec=BRISK)
        while len(life.yarn.apps) < 7 or list(life.yarn.apps.values())[-1].alive:
            if life.reconcile(Mode.ENSURE).phase is Phase.RUNNING:
                life.yarn.end(list(life.yarn.apps)[-1])
            life.clock.ahead += MINUTE

    def test_costs_no_restart_and_starts_the_count_of_failures_again(self) -> None:
        yarn = dead(CODE, lived=10 * MINUTE)
        yarn.now = START + 10 * MINUTE
        yarn.ends = [
            *(past_end(number - 8, START + number * MINUTE) for number in range(2, 8)),
            past_end(0, START + 8 * MINUTE, EndKind.DONE),
        ]
        recorded = noted(yarn)
        pause = step(yarn)
        assert isinstance(pause, Wait | Settled)
        assert pause.until
        assert pause.until - recorded.at <= MINUTE
        assert not past_end(1, kind=EndKind.DONE).costs
