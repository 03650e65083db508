"""The circuit breaker of a realm: KDCs that do not respond are given up for a round; a refusal is an answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Barrier, Event

import pytest

from airflow_kstream.model.errors import CredentialError, KstreamError, Unavailable
from airflow_kstream.supervise.tickets.renewal import RealmCircuitBreaker


def ask(realms: RealmCircuitBreaker, principal: str, answer: type[KstreamError] | None) -> None:
    with realms.request(principal, "renew"):
        if answer:
            raise answer("asked")


def silence(realms: RealmCircuitBreaker, times: int) -> None:
    for number in range(times):
        with pytest.raises(Unavailable, match="asked"):
            ask(realms, f"user{number}@R", Unavailable)


def test_a_realm_is_given_up_after_three_silent_kdc_requests() -> None:
    realms = RealmCircuitBreaker()
    silence(realms, 3)
    with pytest.raises(Unavailable, match=r"not contacted: no KDC of R answered 3 earlier requests") as given_up:
        ask(realms, "me@R", None)
    assert (given_up.value.tried, given_up.value.principal) == ("renew", "me@R")


def test_a_silent_realm_does_not_affect_another_realm() -> None:
    realms = RealmCircuitBreaker()
    silence(realms, 3)
    with pytest.raises(CredentialError, match="asked"):
        ask(realms, "me@OTHER", CredentialError)


def test_new_requests_wait_after_a_silence_until_those_in_flight_end() -> None:
    """Otherwise the first free worker would send a request, and wait, once more."""
    realms, asking, end = RealmCircuitBreaker(), Barrier(5), Event()

    def unanswered(number: int) -> None:
        with suppress(Unavailable), realms.request(f"user{number}@R", "renew"):
            asking.wait(10)
            end.wait(10 if number else 0)
            raise Unavailable("asked")

    with ThreadPoolExecutor(5) as pool:
        waiting = [pool.submit(unanswered, number) for number in range(4)]
        asking.wait(10)
        waiting[0].result(10)
        late = pool.submit(ask, realms, "late@R", None)
        assert wait([late], 0.3).not_done == {late}
        end.set()
        with pytest.raises(Unavailable, match="not contacted: no KDC of R answered 4 earlier requests"):
            late.result(10)


def test_one_silence_is_enough_when_configured() -> None:
    realms = RealmCircuitBreaker(give_up_after=1)
    realms.require_speaking("me@R", "look")
    realms.note_silence("user@R")
    with pytest.raises(Unavailable, match=r"as me@R: not contacted: no KDC of R answered an earlier request of this"):
        realms.require_speaking("me@R", "look")
    realms.require_speaking("me@OTHER", "look")


@pytest.mark.parametrize("answer", [None, CredentialError])
def test_any_answer_shows_that_the_realm_speaks(answer: type[KstreamError] | None) -> None:
    realms = RealmCircuitBreaker()
    silence(realms, 2)
    try:
        ask(realms, "me@R", answer)
    except CredentialError:
        assert answer is CredentialError
    silence(realms, 3)
