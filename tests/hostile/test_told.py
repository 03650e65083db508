"""Somebody would have an alert never come: what a stranger notes of it suppresses nothing, wherever it lies.

`mallory` has no right on any stream, and the state_dir is open (1777). Rows of Airflow's store, forged by who may edit
assets, are the business of tests/airflow/test_told.py.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_kstream.model.streams.event import WATCHED, EventKind, LastingEvent, Ledger, ToldSubject, written_told
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER

STATE_DIR = CLUSTER.state_dir
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = Ledger({(kind, ""): LastingEvent(kind, NOW, "told you") for kind in EventKind}, 10**9)
SUBJECTS = [ToldSubject("", CLUSTER.name, "orders"), ToldSubject("", CLUSTER.name, "", WATCHED)]
OWN = f"{STATE_DIR}/told.streamer"


def told(life: Life, subject: ToldSubject) -> Ledger:
    return life.run.session.told.read([subject])[subject]


def forge(life: Life, folder: str, subject: ToldSubject, ledger: Ledger = EVERYTHING) -> None:
    with life.hdfs.as_user("mallory"):
        life.hdfs.make_folder(folder, "755")
        life.hdfs.write(f"{folder}/{subject.file_name}", written_told(subject, ledger, "airflow@edge1"))


@pytest.fixture(autouse=True)
def open_to_everybody(life: Life) -> None:
    life.hdfs.modes[STATE_DIR] = "1777"


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("name", ["told.mallory", "told.hdfs", "told.streamer", "told.streamer.2", "told."])
def test_notes_in_a_strangers_folder_count_for_nothing_whatever_its_name(
    life: Life, name: str, subject: ToldSubject
) -> None:
    forge(life, f"{STATE_DIR}/{name}", subject)
    assert told(life, subject) == Ledger()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_strangers_note_in_our_own_folder_counts_for_nothing(life: Life, subject: ToldSubject) -> None:
    """Somebody opened it."""
    life.hdfs.make_folder(OWN, "777")
    forge(life, OWN, subject)
    assert told(life, subject) == Ledger()


def test_who_takes_the_name_of_our_folder_keeps_us_from_no_note(life: Life) -> None:
    forge(life, OWN, SUBJECTS[0])
    ours = Ledger({(EventKind.STALLED, ""): LastingEvent(EventKind.STALLED, NOW, "no commit")}, 1)
    life.run.session.told.note(SUBJECTS[0], ours)
    assert life.hdfs.owners[f"{OWN}.2"] == "streamer"
    assert told(life, SUBJECTS[0]) == ours


def test_a_stream_that_runs_as_another_user_suppresses_no_alert_of_its_own(life: Life) -> None:
    """Its job holds that user's tokens, and would be the first to have it unseen that it stalls."""
    with life.hdfs.as_user("billing"):
        folder = f"{STATE_DIR}/told.billing"
        life.hdfs.make_folder(folder, "755")
        life.hdfs.write(f"{folder}/{SUBJECTS[0].file_name}", written_told(SUBJECTS[0], EVERYTHING, "x"))
    assert told(life, SUBJECTS[0]) == Ledger()
