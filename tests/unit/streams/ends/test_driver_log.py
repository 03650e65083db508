"""When a dead application's log is read: where YARN names no error, and nobody else has kept one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.ends.ends import end_of, log_is_asked
from tests.simulated.driver_logs import STATUS
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of

# Of Hadoop 3.4.3, on a JVM that called System.exit(2).
LAUNCHED = (
    "Application application_1_0001 failed 1 times (global limit =2; local limit is =1) due to AM Container for "
    "appattempt_1_0001_000001 exited with  exitCode: 2\nFailing this attempt.Diagnostics: [2026-11-28 22:17:09.154]"
    "Exception from container-launch.\nContainer id: container_1_0001_01_000001\nExit code: 2\n\n[2026-11-28 22:17:09"
    ".173]Container exited with a non-zero exit code 2. Error file: prelaunch.err.\nLast 4096 bytes of prelaunch.err :"
    "\n\nFor more detailed output, check the application tracking page: http://rm:8088/cluster/app/application_1_0001 "
    "Then click on links to logs of each attempt.\n. Failing the application."
)


def dead(diagnostics: str = STATUS, state: ApplicationState = ApplicationState.FAILED) -> Observation:
    world = SimulatedYarn(now=START)
    world.claims = {1: claim_of(TICKET_SPEC, 1, START)}
    app = application(1, state, finished=None if not state.terminal else START)
    world.applications = [(1, replace(app, diagnostics=diagnostics, logs_url="http://n:1/node/containerlogs/c/bob"))]
    return world.look()


@pytest.mark.parametrize(
    ("diagnostics", "asked"),
    [
        (STATUS, True),
        ("", True),
        (
            "Application application_1_0001 failed 1 times due to AM Container for appattempt_1_0001_000001 exited "
            "with  exitCode: 13\nFailing this attempt.Diagnostics: Exception from container-launch.\nExit code: 13",
            True,
        ),
        (LAUNCHED, True),
        ("User class threw exception: java.lang.IllegalStateException: 3", False),
        ("Application application_1_0001 was killed by user bob at 10.0.0.7", False),
        ("exited with  exitCode: -104", False),
        ("exited with  exitCode: -102", False),
        ("ApplicationMaster for attempt appattempt_1_0001_000001 timed out.", False),
    ],
)
def test_the_log_is_asked_where_yarn_names_no_error(diagnostics: str, asked: bool) -> None:
    assert log_is_asked(dead(diagnostics)) is asked


def test_an_exit_code_alone_resembles_no_other_end() -> None:
    """Three streams that end so have no cause in common, and a stream that does so again no error that repeats."""
    assert end_of(LAUNCHED).fingerprint == ""


def test_the_log_is_asked_once_and_only_of_the_dead_without_a_word_of_their_own() -> None:
    assert not log_is_asked(dead(state=ApplicationState.RUNNING))
    assert not log_is_asked(replace(dead(), driver=replace(dead().driver, failure="ValueError: 3")))
    assert not log_is_asked(replace(dead(), driver=replace(dead().driver, log_error="ValueError: 3")))
    assert not log_is_asked(replace(dead(), applications=()))
