"""The warning that a job can't replace a worker that it loses: it foretells, and does nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.event import Event, EventKind, Ledger, Trouble
from airflow_kstream.model.streams.generation import Adoption, Claim
from airflow_kstream.model.streams.horizon import HorizonReason, Replacement, WorkerTokens
from airflow_kstream.model.streams.observation import CredentialLook
from airflow_kstream.model.streams.plan import Settled, Stop
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.events.bundles import Bundles, compare
from airflow_kstream.policy.events.signs import Signs, known, troubles
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of, watched

SPEC = replace(TICKET_SPEC, credentials=KeytabCredentials("streamer@EXAMPLE.COM", "/etc/streamer.keytab"))
CLAIM = claim_of(SPEC, 1, START)
LAUNCH = WorkerTokens("TaskManager", renewed=True)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ASKED = RestartPolicy(for_new_taskmanagers=True)


def replacement(workers: WorkerTokens, now: datetime = START, claim: Claim = CLAIM) -> Replacement:
    found = horizon(SPEC.restart, Credentials(claim, CredentialLook(workers=workers)), now)
    assert (found.reason, found.hard, found.plan, found.force) == (HorizonReason.NONE, None, None, None)
    assert found.replacement is not None
    return found.replacement


@pytest.mark.parametrize(("renewed", "lasts"), [(True, 7 * DAY), (False, DAY)])
def test_it_lasts_as_long_as_the_token_of_the_launch(renewed: bool, lasts: timedelta) -> None:
    assert replacement(replace(LAUNCH, renewed=renewed)).until == START + lasts


def test_an_adopted_job_is_taken_for_older_than_its_start() -> None:
    adopted = replace(CLAIM, adoption=Adoption("application_1_0001", START - DAY))
    assert replacement(replace(LAUNCH, renewed=False), claim=adopted).until == START - SPEC.restart.adopt_margin


def test_a_job_whose_workers_get_the_newest_tokens_has_none() -> None:
    assert horizon(SPEC.restart, Credentials(CLAIM), START).replacement is None


def test_without_lifetimes_it_is_not_known() -> None:
    unknown = changed(CLAIM, lifetimes=None)
    assert replacement(LAUNCH, claim=unknown) == Replacement("TaskManager", known=False)


def test_a_keeper_that_confirms_the_future_ends_it() -> None:
    kept = replace(LAUNCH, kept_until=START + 30 * DAY)
    assert replacement(kept, START + 29 * DAY) == Replacement("TaskManager")


def test_tokens_that_ended_are_in_the_place_of_those_of_the_launch() -> None:
    """A keeper goes on, and got no younger ones: no round of its JobManager succeeded."""
    kept = replace(LAUNCH, kept_until=START + 2 * DAY)
    lost = replacement(kept, START + 3 * DAY)
    assert (lost.until, lost.lost(START + 3 * DAY)) == (START + 2 * DAY, True)


def test_a_keeper_that_fell_silent_covers_what_it_confirmed() -> None:
    silent = replace(LAUNCH, kept_until=START + 30 * DAY, silent="its keeper's last word is 11m old")
    assert replacement(silent, START + 29 * DAY).until == START + 30 * DAY
    never = replace(LAUNCH, silent="its keeper has confirmed nothing for 20m")
    assert (replacement(never).until, replacement(never).silent) == (START + 7 * DAY, never.silent)


def test_words_say_when_and_that_the_job_runs_on() -> None:
    loses = Replacement("TaskManager", START)
    assert loses.words(START - HOUR).startswith("from 2026-01-01 00:00 UTC on a TaskManager that it loses can't be")
    assert loses.words(START).startswith("since 2026-01-01 00:00 UTC a TaskManager")
    assert Replacement("TaskManager").words(START) == ""


def test_a_restart_is_planned_for_it_only_where_that_is_declared_and_never_forced() -> None:
    look = CredentialLook(workers=LAUNCH)
    ends = horizon(ASKED, Credentials(CLAIM, look), START)
    assert (ends.reason, ends.hard, ends.force) == (HorizonReason.NO_NEW_WORKERS, None, None)
    assert ends.plan is not None
    assert START + 4 * DAY < ends.plan < START + 6 * DAY
    assert not ends.forced(START + 400 * DAY)


def test_an_earlier_end_comes_first() -> None:
    look = CredentialLook(workers=LAUNCH)
    ends = horizon(ASKED, Credentials(CLAIM, look, time_left=HOUR), START)
    assert ends.reason is HorizonReason.YARN_LIFETIME


def test_another_engine_has_no_such_reason() -> None:
    with pytest.raises(InvalidInput, match=r"restart\.for_new_taskmanagers: remove it"):
        replace(SPEC, restart=ASKED).checked()


FLEET, LATER = 30, START + 40 * DAY


def adopted_long_ago(number: int, policy: RestartPolicy) -> tuple[StreamSpec, SimulatedYarn]:
    """A stream whose job began forty days ago and was adopted now, with a keytab and nothing of ours."""
    spec = replace(SPEC, name=f"stream-{number}", restart=policy)
    yarn = SimulatedYarn(now=LATER)
    yarn.claims[1] = replace(claim_of(spec, 1, LATER), adoption=Adoption("application_1_0001", START))
    yarn.applications = [(1, application(1, ApplicationState.RUNNING))]
    return spec, yarn


@pytest.mark.parametrize(("policy", "step"), [(RestartPolicy(), Settled), (ASKED, Stop)])
def test_thirty_jobs_adopted_after_forty_days_are_left_alone(policy: RestartPolicy, step: type) -> None:
    """No restart, one message."""
    bundles = Bundles()
    for number in range(FLEET):
        spec, yarn = adopted_long_ago(number, policy)
        seen = changed(yarn.look(), workers=replace(LAUNCH, renewed=False))
        assert isinstance(next_step(spec, seen, watched(seen), Mode.WATCH), step)
        told = Ledger()
        for minute in range(5):
            told, events = compare(told, *signs_at(spec.name, seen.now), seen.now, "prod", spec.name)
            for event in events:
                bundles = bundles.add("a notifier", event, minute * 60.0 if number else 0.0)
        assert told.kinds == {EventKind.NOT_REPLACEABLE}
    _, due = bundles.take(60.0)
    ((key, events),) = due.items()
    assert (key.kind, len(events)) == (EventKind.NOT_REPLACEABLE, FLEET)


def signs_at(name: str, now: datetime) -> tuple[tuple[Trouble, ...], frozenset[EventKind]]:
    signs = changed(Signs(), not_replaceable=Replacement("TaskManager", START + DAY).words(now))
    return troubles(signs), known(signs)


def told(*looks: Signs) -> list[Event]:
    ledger, events = Ledger(), list[Event]()
    for look in looks:
        ledger, more = compare(ledger, troubles(look), known(look), START, "prod", "orders")
        events += more
    return events


def test_a_look_that_does_not_know_neither_begins_nor_ends_it() -> None:
    lost = changed(Signs(), not_replaceable="since yesterday")
    unknown = changed(Signs(), replacement_known=False)
    assert [event.ended for event in told(lost, unknown, lost, Signs())] == [False, True]


def test_a_silent_keeper_is_an_event_of_its_own() -> None:
    silent = changed(Signs(), keeper="its keeper's last word is 11m old")
    assert [event.kind for event in told(silent, silent, Signs())] == [EventKind.KEEPER, EventKind.KEEPER]
