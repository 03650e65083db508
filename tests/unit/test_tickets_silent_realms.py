"""A realm whose KDCs keep silent is given up for a round; a refusal is an answer."""

from __future__ import annotations

import pytest

from airflow_kstream.model.errors import CredentialError, KstreamError, Unavailable
from airflow_kstream.supervise.silent_realms import SilentRealms


def ask(realms: SilentRealms, principal: str, answer: type[KstreamError] | None) -> None:
    with realms.asking(principal, "renew"):
        if answer:
            raise answer("asked")


def silence(realms: SilentRealms, times: int) -> None:
    for number in range(times):
        with pytest.raises(Unavailable, match="asked"):
            ask(realms, f"user{number}@R", Unavailable)


def test_after_three_silences_nobody_else_of_the_realm_is_asked() -> None:
    realms = SilentRealms()
    silence(realms, 3)
    with pytest.raises(Unavailable, match=r"not asked: no KDC of R answered when 3 others were tried") as given_up:
        ask(realms, "me@R", None)
    assert (given_up.value.tried, given_up.value.principal) == ("renew", "me@R")


def test_another_realm_is_asked_all_the_same() -> None:
    realms = SilentRealms()
    silence(realms, 3)
    ask(realms, "me@OTHER", None)


@pytest.mark.parametrize("answer", [None, CredentialError])
def test_any_answer_shows_that_the_realm_speaks(answer: type[KstreamError] | None) -> None:
    realms = SilentRealms()
    silence(realms, 2)
    try:
        ask(realms, "me@R", answer)
    except CredentialError:
        assert answer is CredentialError
    silence(realms, 3)
