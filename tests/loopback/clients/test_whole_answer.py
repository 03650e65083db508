"""Servers that never fall silent and never finish: each answer has a limit of its own, from first to last byte."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from airflow_kstream.clients.http import http_errors
from airflow_kstream.clients.waiting import TimeLimits, at_most, limit_whole_answers
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import Answer, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
SLOW_BODY = Answer(200, b"x" * 1000, drip=0.02)
SLOW_HEAD = Answer(200, b"{}", drip=0.02, dripping_head=True)


def _read(session: requests.Session, address: str, *, streamed: bool = False, timeout: Any = (5, 30)) -> None:
    with http_errors("read", address, ADA):
        session.get(address, timeout=timeout, stream=streamed).raw.read()


@pytest.mark.parametrize("answer", [SLOW_BODY, SLOW_HEAD], ids=["body", "head"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_comes_byte_by_byte_ends_after_the_whole_limit(answer: Answer, streamed: bool) -> None:
    with serving({"": answer}) as server, requests.Session() as session:
        limit_whole_answers(session, 0.3)
        with pytest.raises(Unavailable, match=r"its answer was not complete after 0\.3 s"):
            _read(session, server.address, streamed=streamed)


def test_a_request_may_bring_a_limit_of_its_own_and_the_next_one_has_the_usual() -> None:
    script = {"/slow": SLOW_BODY, "/short": Answer(200, b"xxxxx", drip=0.02)}
    limits: Any = TimeLimits(5, 30, 0.2)
    with serving(script) as server, requests.Session() as session:
        limit_whole_answers(session, 30)
        with pytest.raises(Unavailable, match=r"not complete after 0\.2 s"):
            _read(session, f"{server.address}/slow", timeout=limits)
        assert session.get(f"{server.address}/short", timeout=(5, 30)).content == b"xxxxx"


def test_an_impatient_caller_shortens_every_limit_and_lengthens_none() -> None:
    short: Any = TimeLimits(5, 30, 0.2)
    with serving({"": SLOW_BODY}) as server, requests.Session() as session:
        limit_whole_answers(session, 30)
        with at_most(0.3):
            for timeout in ((5, 30), 30, None, TimeLimits(5, 30, 30)):
                with pytest.raises(Unavailable, match=r"not complete after 0\.3 s"):
                    _read(session, server.address, timeout=timeout)
        with at_most(30), pytest.raises(Unavailable, match=r"not complete after 0\.2 s"):
            _read(session, server.address, timeout=short)


def test_silence_ends_after_the_time_of_one_read() -> None:
    with serving({"": Answer(200, b"x", drip=2)}) as server, requests.Session() as session:
        limit_whole_answers(session, 30)
        with pytest.raises(requests.ConnectionError, match=r"Read timed out"):
            session.get(server.address, timeout=(5, 0.2))


def test_a_kept_connection_serves_the_next_request() -> None:
    with serving({"": Answer(200, b"{}")}) as server, requests.Session() as session:
        limit_whole_answers(session, 30)
        assert [session.get(server.address, timeout=(5, 1)).content for _ in range(3)] == [b"{}"] * 3
