"""What a look is told of the future: it must never fail for it."""

from __future__ import annotations

from airflow_kstream.policy.doctor.checks import examine
from airflow_kstream.supervise.doctor.examination import foretold
from tests.simulated.doctor_facts import IN_ORDER, TICKET_STREAM, with_stream


def test_each_stream_has_its_own_sentences_and_notes_are_none() -> None:
    assert foretold(examine(IN_ORDER)) == {}
    unsupervised = with_stream(TICKET_STREAM, supervised=False)
    assert foretold(examine(unsupervised)) == {"clicks": ("it fails from 2026-05-14 12:00 UTC on (token-end)",)}
