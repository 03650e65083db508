"""Two ResourceManagers, one of which errs, refuses, is frozen or was: the healthy one is found, and nothing is taken
for gone on the word of one that may be wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from airflow_kstream.clients import yarn_failover
from airflow_kstream.clients.waiting import TimeLimits
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import NOW, STRANGE, Answer, StrangeServer, introduction, said, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
DAY, WAIT = timedelta(days=1), timedelta(minutes=2)
GONE = "kstream-gen-orders-1"
NOBODY = "http://127.0.0.1:1"


def application(state: str = "RUNNING") -> Mapping[str, str]:
    return {"id": "application_1_0001", "state": state, "user": "ada", "applicationTags": "kstream"}


ACTIVE = {"/info": introduction(), "/apps": said({"apps": {"app": [application()]}})}
EMPTY = {"/info": introduction(), "/apps": said({"apps": None})}
# Another active one's applications are behind its redirect, which leads nowhere here.
STANDBY = {"/info": introduction("STANDBY"), "/apps": Answer(307, b"", headers={"Location": f"{NOBODY}/ws"})}


class Pair:
    """Two servers and a client of both, in this order."""

    def __init__(self, first: StrangeServer, second: StrangeServer) -> None:
        self.first, self.second = first, second
        self.yarn = ResourceManager((first.address, second.address), ADA, Tls())

    def states(self) -> list[ApplicationState]:
        return [app.state for app in self.yarn.applications("kstream")]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with serving(STANDBY) as first, serving(ACTIVE) as second:
        both = Pair(first, second)
        yield both
        both.yarn.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Our own monotonic clock, in seconds: its last entry is now."""
    seconds = [1000.0]
    # Minutes pass by it, between two requests that leave for a real server.
    monkeypatch.setattr(time, "monotonic", lambda: seconds[-1])
    return seconds


STRANGE_INTRODUCTIONS = STRANGE | {
    "a start at 1e30": introduction(since=1e30),
    "a start in words": said({"clusterInfo": {"haState": "ACTIVE", "hadoopVersion": "3", "startedOn": "soon"}}),
}


@pytest.mark.parametrize("answer", STRANGE_INTRODUCTIONS.values(), ids=STRANGE_INTRODUCTIONS)
def test_one_wrong_answer_of_the_first_does_not_hide_the_healthy_second(pair: Pair, answer: Answer) -> None:
    pair.first.script = {"": answer}
    assert pair.states() == [ApplicationState.RUNNING]


@pytest.mark.parametrize("answer", STRANGE_INTRODUCTIONS.values(), ids=STRANGE_INTRODUCTIONS)
def test_a_wrong_answer_of_the_former_active_one_does_not_hide_the_new_one(pair: Pair, answer: Answer) -> None:
    pair.first.script, pair.second.script = dict(ACTIVE), dict(STANDBY)
    pair.states()
    pair.first.script, pair.second.script = {"": answer}, dict(ACTIVE)
    assert pair.states() == [ApplicationState.RUNNING]


@pytest.mark.parametrize("in_the_head", [False, True])
def test_a_byte_a_second_of_the_first_does_not_hide_the_healthy_second(
    pair: Pair, in_the_head: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All are asked at once, each in a thread of its own, which has the usual ten seconds.
    monkeypatch.setattr(yarn_failover, "_TO_INTRODUCE_ITSELF", TimeLimits(5, 10, 0.3))
    pair.first.script = {"": Answer(200, ACTIVE["/info"].body, drip=0.1, dripping_head=in_the_head)}
    began = time.monotonic()
    assert pair.states() == [ApplicationState.RUNNING]
    assert time.monotonic() - began < 9, "it was given up before the usual limit"


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("401", "403 of a proxy", Denied),
        ("403 of a proxy", "403 of a proxy", Denied),
        ("404 of a proxy", "404 of a proxy", Unavailable),
        ("401", "503", Unavailable),
        ("HTML with 200", "truncated JSON", Unavailable),
    ],
)
def test_when_all_refuse_each_is_named_with_its_answer(
    pair: Pair, first: str, second: str, kind: type[KstreamError]
) -> None:
    pair.first.script, pair.second.script = {"": STRANGE[first]}, {"": STRANGE[second]}
    with pytest.raises(kind) as caught:
        pair.states()
    assert type(caught.value) is kind
    for server in (pair.first, pair.second):
        assert server.address in caught.value.message


def test_two_without_the_page_of_introduction_lack_no_application(pair: Pair) -> None:
    pair.first.script = pair.second.script = {"": said({"RemoteException": {"message": "no such page"}}, 404)}
    with pytest.raises(Unavailable, match="no such page"):
        pair.yarn.application("application_1_0001")


def test_a_refusal_beside_a_server_that_is_away_may_pass() -> None:
    with serving({"": STRANGE["401"]}) as refusing:
        yarn = ResourceManager((refusing.address, NOBODY), ADA, Tls())
        with pytest.raises(Unavailable, match="Connection refused"):
            yarn.active()
        yarn.close()


def test_two_that_say_active_are_no_conclusion_and_both_are_named(pair: Pair) -> None:
    pair.first.script = dict(EMPTY)
    with pytest.raises(Unavailable, match="say that they are ACTIVE") as caught:
        pair.states()
    assert pair.first.address in str(caught.value)
    assert pair.second.address in str(caught.value)


def test_only_yarn_itself_says_that_an_application_is_not_found_and_no_proxy(pair: Pair) -> None:
    unknown = {"RemoteException": {"exception": "NotFoundException", "message": "app with id a not found"}}
    pair.second.script["/apps/a"] = said(unknown, 404)
    with pytest.raises(NotFound, match="app with id a not found"):
        pair.yarn.application("a")
    for strange in ("404 of a proxy", "JSON of a proxy with 404"):
        pair.second.script["/apps/a"] = STRANGE[strange]
        with pytest.raises(Unavailable, match="it answered 404: "):
            pair.yarn.application("a")


def test_a_refusal_of_the_active_one_is_final_and_the_request_is_not_sent_again(pair: Pair) -> None:
    pair.states()
    pair.second.script["/state"] = said({"RemoteException": {"message": "ada may not"}}, 403)
    pair.second.requests.clear()
    with pytest.raises(Denied, match="ada may not"):
        pair.yarn.kill("application_1_0001", "why", timedelta())
    assert sum(request.startswith("PUT") for request in pair.second.requests) == 1


def test_what_the_only_active_one_lacks_is_gone(pair: Pair) -> None:
    pair.second.script = dict(EMPTY)
    assert pair.states() == []
    pair.yarn.confirm_absence(GONE, DAY, WAIT)


def test_nothing_is_gone_on_the_word_of_one_that_slept_while_the_other_took_over(pair: Pair) -> None:
    pair.first.script, pair.second.script = dict(EMPTY), dict(STANDBY)
    assert pair.states() == []
    pair.second.script = dict(ACTIVE)
    with pytest.raises(Unavailable, match="say that they are ACTIVE"):
        pair.yarn.confirm_absence(GONE, DAY, WAIT)


@pytest.mark.parametrize(
    "after",
    [introduction("INITIALIZING"), introduction(since=NOW - timedelta(hours=23)), STRANGE["503"]],
    ids=["it recovers", "it became active since", "it is away"],
)
def test_nothing_is_gone_when_the_one_that_answered_is_not_the_active_one_all_along(pair: Pair, after: Answer) -> None:
    pair.second.script = dict(EMPTY)
    pair.states()
    pair.second.script["/info"] = after
    with pytest.raises(Unavailable):
        pair.yarn.confirm_absence(GONE, DAY, WAIT)


def test_nothing_is_gone_right_after_the_active_one_became_active_by_its_own_clock(
    pair: Pair, clock: list[float]
) -> None:
    pair.second.script = {**EMPTY, "/info": introduction(since=NOW - timedelta(seconds=5))}
    pair.states()
    with pytest.raises(Unavailable, match="became active 5s ago"):
        pair.yarn.confirm_absence(GONE, DAY, WAIT)
    later = {"Date": format_datetime(NOW + WAIT, usegmt=True)}
    pair.second.script["/info"] = replace(introduction(since=NOW - timedelta(seconds=5)), headers=later)
    pair.yarn.confirm_absence(GONE, DAY, WAIT)


def test_what_was_submitted_after_the_active_one_became_active_needs_no_recovery(
    pair: Pair, clock: list[float]
) -> None:
    pair.second.script = {**EMPTY, "/info": introduction(since=NOW - timedelta(seconds=5))}
    pair.states()
    pair.yarn.confirm_absence(GONE, timedelta(seconds=4), WAIT)
    with pytest.raises(Unavailable, match="became active 5s ago"):
        pair.yarn.confirm_absence(GONE, timedelta(seconds=6), WAIT)


def test_a_clock_that_was_set_back_holds_nothing_up_for_longer_than_ours_says(pair: Pair, clock: list[float]) -> None:
    pair.second.script = {**EMPTY, "/info": introduction(since=NOW + timedelta(hours=3))}
    pair.states()
    clock.append(clock[-1] + WAIT.total_seconds() - 1)
    with pytest.raises(Unavailable, match="became active"):
        pair.yarn.confirm_absence(GONE, DAY, WAIT)
    clock.append(clock[-1] + 2)
    pair.yarn.confirm_absence(GONE, DAY, WAIT)


class TestTheOtherCannotBeAsked:
    """A frozen former active one that wakes says ACTIVE for some seconds; perhaps the new one can't be reached then."""

    @pytest.fixture
    def yarn(self, clock: list[float]) -> Iterator[ResourceManager]:
        with ExitStack() as stack:
            self.server = stack.enter_context(serving(EMPTY))
            yarn = ResourceManager((NOBODY, self.server.address), ADA, Tls())
            stack.callback(yarn.close)
            yield yarn

    def test_what_is_there_is_believed(self, yarn: ResourceManager) -> None:
        self.server.script = dict(ACTIVE)
        assert len(yarn.applications("kstream")) == 1

    def test_what_is_missing_is_gone_only_after_it_has_been_missing_for_long(
        self, yarn: ResourceManager, clock: list[float]
    ) -> None:
        yarn.applications("kstream")
        for seconds in (0, 60, 59):
            clock.append(clock[-1] + seconds)
            with pytest.raises(Unavailable, match=rf"{NOBODY}.*Connection refused.*missing for 2m"):
                yarn.confirm_absence(GONE, DAY, WAIT)
        clock.append(clock[-1] + 2)
        yarn.confirm_absence(GONE, DAY, WAIT)

    def test_what_showed_up_again_begins_a_new_time_of_missing(self, yarn: ResourceManager, clock: list[float]) -> None:
        yarn.applications("kstream")
        with pytest.raises(Unavailable):
            yarn.confirm_absence("kstream", DAY, WAIT)
        self.server.script = dict(ACTIVE)
        assert len(yarn.applications("kstream")) == 1
        clock.append(clock[-1] + 1000)
        self.server.script = dict(EMPTY)
        yarn.applications("kstream")
        with pytest.raises(Unavailable):
            yarn.confirm_absence("kstream", DAY, WAIT)

    def test_the_time_begins_again_with_each_time_that_it_becomes_active(
        self, yarn: ResourceManager, clock: list[float]
    ) -> None:
        yarn.applications("kstream")
        with pytest.raises(Unavailable):
            yarn.confirm_absence(GONE, DAY, WAIT)
        clock.append(clock[-1] + 1000)
        self.server.script["/info"] = introduction(since=NOW - timedelta(hours=2))
        for _ in range(2):
            with pytest.raises(Unavailable):
                yarn.confirm_absence(GONE, DAY, WAIT)


def test_a_kill_outlasts_a_failover_to_one_that_does_not_know_the_application_yet(pair: Pair) -> None:
    unknown = said({"RemoteException": {"exception": "NotFoundException", "message": "not found"}}, 404)
    answers = iter([unknown, said({"state": "KILLED"}), said({"state": "KILLED"})])
    pair.states()
    pair.first.script = {
        "/info": introduction(),
        "/apps/application_1_0001/state": lambda: next(answers),
        "/apps/application_1_0001": said({"app": application("KILLED")}),
    }
    pair.second.script = {"": STRANGE["503"]}
    assert pair.yarn.kill("application_1_0001", "why", timedelta(seconds=20)).state is ApplicationState.KILLED


def test_a_kill_is_over_when_the_end_is_reported_and_not_when_the_order_is_taken(pair: Pair) -> None:
    states = iter(["RUNNING", "RUNNING", "KILLED"])
    pair.second.script |= {
        "/apps/application_1_0001/state": said({"state": "RUNNING"}, 202),
        "/apps/application_1_0001": lambda: said({"app": application(next(states))}),
    }
    with pytest.raises(Unavailable, match="its end is not confirmed"):
        pair.yarn.kill("application_1_0001", "why", timedelta())
    assert pair.yarn.kill("application_1_0001", "why", timedelta(seconds=20)).state is ApplicationState.KILLED


def test_an_application_that_no_one_knows_is_not_confirmed_dead(pair: Pair) -> None:
    pair.second.script["/apps/"] = said({"RemoteException": {"message": "not found"}}, 404)
    with pytest.raises(Unavailable, match=f"kill a on {pair.second.address}.*its end is not confirmed"):
        pair.yarn.kill("a", "why", timedelta())


def test_the_age_of_a_term_is_measured_by_the_resourcemanagers_own_clock(pair: Pair) -> None:
    info = pair.yarn.info(pair.second.address)
    assert (info.started, info.age) == (datetime(2025, 12, 31, tzinfo=UTC), DAY)
