"""The cause of an end, from the words of YARN, Hadoop and Spark as their logs and answers have them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.application import ApplicationState
from airflow_kstream.model.generation_end import EndKind
from airflow_kstream.model.plan import Phase, Settled, Step, Submit
from airflow_kstream.policy.streams.ends import end_of
from airflow_kstream.policy.streams.reconcile import Mode, next_step
from tests.unit.simulated_yarn import START, TICKET_SPEC, SimulatedYarn, watched

_FAILED = "Application application_1_0001 failed 1 times due to "
_AM = f"{_FAILED}AM Container for appattempt_1_0001_000001 exited with  exitCode: "
_KILLED = "Application application_1_0001 was killed by user bob at 10.0.0.7"
_INVALID = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
ENDS = {
    f"org.apache.hadoop.ipc.RemoteException({_INVALID}): token (HDFS_DELEGATION_TOKEN token 4361 for hncscwc) can't be "
    "found in cache": EndKind.CREDENTIALS,
    f"{_INVALID}: Invalid AMRMToken from appattempt_1477044851292_468337_000002": EndKind.CREDENTIALS,
    "token (HDFS_DELEGATION_TOKEN token 7 for orders with renewer yarn) is expired, current time: 2026-01-01": (
        EndKind.CREDENTIALS
    ),
    "java.io.IOException: Client cannot authenticate via:[TOKEN, KERBEROS]": EndKind.CREDENTIALS,
    f"{_AM}-102\nFailing this attempt.Diagnostics: Container preempted by scheduler": EndKind.PREEMPTED,
    f"{_AM}-100\nFailing this attempt.Diagnostics: Container released on a *lost* node": EndKind.NODE_LOST,
    f"{_AM}-104\nFailing this attempt.Diagnostics: [2026-01-01]Container [pid=1,containerID=container_1_0001_01_000001]"
    " is running 123B beyond the 'PHYSICAL' memory limit. Current usage: 1.4 GB": EndKind.MEMORY,
    f"{_FAILED}ApplicationMaster for attempt appattempt_1_0001_000001 timed out. Failing the application.": (
        EndKind.AM_EXPIRED
    ),
    "Application is killed by ResourceManager as it has exceeded the lifetime period.": EndKind.LIFETIME,
    _KILLED: EndKind.KILLED,
    f"{_AM}-101\nFailing this attempt.": EndKind.INFRASTRUCTURE,
    "User class threw exception: java.net.ConnectException: Call From a/1.2.3.4 to nn:8020 failed": (
        EndKind.INFRASTRUCTURE
    ),
    "User application exited with status 1": EndKind.CODE,
    "User class threw exception: java.lang.IllegalStateException: 3": EndKind.CODE,
    "": EndKind.UNKNOWN,
    "something new": EndKind.UNKNOWN,
}


@pytest.mark.parametrize(("diagnostics", "kind"), ENDS.items())
def test_an_end_is_classified_by_the_words_of_its_servers(diagnostics: str, kind: EndKind) -> None:
    assert end_of(diagnostics).kind is kind


@pytest.mark.parametrize(
    "diagnostics",
    [
        "User class threw exception: com.acme.OAuthException: Token has expired",
        "User class threw exception: io.jsonwebtoken.ExpiredJwtException: JWT expired at 2026-01-01",
        "User class threw exception: com.acme.InvalidTokenFormat: line 3",
    ],
)
def test_a_token_of_the_jobs_own_is_no_dead_delegation_token(diagnostics: str) -> None:
    assert end_of(diagnostics).kind is EndKind.CODE


def test_a_kill_names_the_user_even_where_the_killer_quotes_an_error() -> None:
    end = end_of(f"{_KILLED} with diagnostic message: java.lang.OutOfMemoryError suspected")
    assert (end.kind, end.killed_by) == (EndKind.KILLED, "bob")


def test_a_jobs_own_words_about_a_kill_are_no_kill_by_yarn() -> None:
    assert end_of("User class threw exception: QueryException: query 7 was killed by user bob").kind is EndKind.CODE


def ended(diagnostics: str, *, after: timedelta = timedelta(hours=2), committed: bool = True) -> Step:
    """Return the watching supervisor's next step for a generation that ended so long after its start."""
    yarn = SimulatedYarn()
    yarn.carry_out(next_step(TICKET_SPEC, yarn.look(), watched(yarn.look()), Mode.ENSURE))
    yarn.arrive()
    if committed:
        yarn.pass_time(20)
    yarn.now = START + after
    yarn.end(yarn.running[0].id, ApplicationState.FAILED)
    yarn.applications = [(number, replace(app, diagnostics=diagnostics)) for number, app in yarn.applications]
    yarn.pass_time(300)
    return next_step(TICKET_SPEC, yarn.look(), watched(yarn.look()), Mode.WATCH)


def reported(step: Step) -> str:
    """Return the words of an end that is the task's failure."""
    assert isinstance(step, Settled)
    assert step.phase is Phase.ENDED
    return step.why


PREEMPTED = f"{_AM}-102\nFailing this attempt."


def test_a_stream_that_worked_and_was_preempted_is_followed_at_once() -> None:
    followed = ended(PREEMPTED)
    assert isinstance(followed, Submit)
    assert followed.why.startswith("generation 1 was preempted; ")


@pytest.mark.parametrize(
    "diagnostics",
    [PREEMPTED, f"{_AM}-100", f"{_INVALID}: Invalid AMRMToken", "java.io.IOException: GSS initiate failed"],
)
def test_an_end_that_may_repeat_itself_at_once_is_reported(diagnostics: str) -> None:
    """A job that ends after each first batch would be restarted all day, and every task would be green."""
    reported(ended(diagnostics, after=timedelta(minutes=59)))


def test_a_generation_that_never_committed_is_reported_regardless_of_its_end() -> None:
    reported(ended(PREEMPTED, committed=False))


def test_a_report_names_the_cause_of_an_end_where_it_is_known() -> None:
    words = "application_1_0001 ended by itself"
    assert reported(ended(f"{_AM}-104")).startswith(f"{words} (memory): FAILED/FAILED, ")
    assert reported(ended("")) == f"{words}: FAILED/FAILED"


def test_a_report_names_the_user_who_killed_the_application() -> None:
    assert reported(ended(_KILLED)).startswith("application_1_0001 was killed by bob: FAILED/FAILED, ")
