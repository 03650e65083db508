"""What a look is told of the future: it must never fail for it."""

from __future__ import annotations

import logging

import pytest

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.supervise.doctor import examination
from airflow_kstream.supervise.doctor.examination import foretell
from tests.simulated.doctor_facts import IN_ORDER, TICKET_STREAM, with_stream
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of


@pytest.mark.parametrize("error", [Unavailable("it is away"), AttributeError("a defect of ours")])
def test_no_error_of_an_examination_reaches_a_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(*of: object, **more: object) -> None:
        raise error

    monkeypatch.setattr(examination, "cluster_facts", fail)
    with caplog.at_level(logging.WARNING):
        assert foretell(session_of(SimHdfs(SimClock()), SimYarn(SimClock()))) == {}
    assert "could not be examined" in caplog.text


def test_each_stream_has_its_own_sentences_and_notes_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(SimHdfs(SimClock()), SimYarn(SimClock()))
    monkeypatch.setattr(examination, "cluster_facts", lambda *of, **more: IN_ORDER)
    assert foretell(session) == {}
    unsupervised = with_stream(TICKET_STREAM, supervised=False)
    monkeypatch.setattr(examination, "cluster_facts", lambda *of, **more: unsupervised)
    assert foretell(session) == {"clicks": ("it fails from 2026-05-14 12:00 UTC on (token-end)",)}
