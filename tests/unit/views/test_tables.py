"""Text for users: without control characters and passwords, and with moments in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.printable import without_passwords
from airflow_kstream.model.streams.plan import Phase, Settled
from airflow_kstream.model.streams.stall import Heartbeat, Pulse
from airflow_kstream.model.streams.token_push import RefreshStatus
from airflow_kstream.supervise.streams.look.verdict import CredentialVerdict, PastVerdict, ProgressVerdict, Verdict
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import away, lines

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def shown(**changed: object) -> str:
    ended = Settled(Phase.ENDED, "application_1_0001 ended by itself: FINISHED/FAILED")
    verdict = Verdict(**({"step": ended, "why": ended.why, "generation": 1} | changed))  # type: ignore[arg-type]
    return "\n".join(lines(streams_table({"orders": verdict})))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("http://u:p@h:8088: refused", "http://u:***@h:8088: refused"),
        ("http://u:p@h,https://v:q@i", "http://u:***@h,https://v:***@i"),
        ("http://:p@h", "http://:***@h"),
        ("http://h:8088/ws?x=a@b", "http://h:8088/ws?x=a@b"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
        ("hdfs://ns1/a:b@c", "hdfs://ns1/a:b@c"),
    ],
)
def test_the_password_of_a_url_is_masked(text: str, masked: str) -> None:
    assert without_passwords(text) == masked


def test_a_moment_tells_how_far_away_it_is() -> None:
    assert away(NOW + timedelta(minutes=5), NOW) == "in 5m"
    assert away(NOW - timedelta(minutes=5), NOW) == "5m ago"


def test_a_commit_of_a_clock_ahead_of_ours_was_0s_ago() -> None:
    beat = Heartbeat(Pulse.HEALTHY, timedelta(seconds=-1), "batch 1 is committed")
    assert "0s ago" in shown(progress=ProgressVerdict(beat))


def test_a_dead_stream_shows_the_first_line_of_what_it_died_of() -> None:
    failure = "\nThe NameSpace quota is exceeded\n\tat org.apache.hadoop.hdfs.X"
    printed = shown(past=PastVerdict(failure=failure))
    assert "FINISHED/FAILED: The NameSpace quota is exceeded" in " ".join(printed.split())
    assert "org.apache" not in printed


def test_the_heartbeat_of_a_stream_that_does_not_run_is_past() -> None:
    beat = ProgressVerdict(Heartbeat(Pulse.HEALTHY, timedelta(minutes=5), ""))
    stopped = Settled(Phase.STOPPED, "it is stopped, as ann wants")
    said = shown(step=stopped, why=stopped.why, progress=beat)
    assert "it is stopped, as ann wants; last seen HEALTHY" in said
    assert "ended, HEALTHY" in shown(why="it ended", progress=beat, lives=True)


def test_the_state_of_a_stalled_stream_says_why_it_stands_still() -> None:
    """YARN and the engine call it running, and at night nobody asks a second question."""
    why = "no TaskManager works for it: Token has expired"
    beat = ProgressVerdict(Heartbeat(Pulse.STALLED, timedelta(minutes=5), why, starving=True))
    told = " ".join(shown(why="application_1_0001 is RUNNING", progress=beat, lives=True).split())
    assert f"application_1_0001 is RUNNING, STALLED: {why}" in told
    assert told.count(why) == 1
    assert why not in shown(why="it runs", progress=replace(beat, heartbeat=Heartbeat(Pulse.HEALTHY, None, why)))


def test_a_horizon_that_has_passed_is_not_to_come() -> None:
    assert "5m ago" in shown(credentials=CredentialVerdict(timedelta(minutes=-5)), lives=True)


def test_of_a_stream_that_does_not_run_no_credentials_end() -> None:
    ends = CredentialVerdict(timedelta(minutes=5), uncounted=("Kafka",), logs_left=timedelta(minutes=1))
    printed = shown(credentials=ends)
    assert "nothing runs" in printed
    assert not any(words in printed for words in ("in 5m", "not counted", "aggregated"))
    assert "nothing runs" not in shown(step=None, why="nobody answers", credentials=CredentialVerdict())


@pytest.mark.parametrize(
    ("remaining", "words"),
    [
        (timedelta(minutes=4), "in 4m; held: nobody restarts it before"),
        (timedelta(minutes=-4), "4m ago; held: nobody restarts it; it may look healthy until it opens"),
    ],
)
def test_the_horizon_of_a_held_stream_says_that_nobody_restarts_it(remaining: timedelta, words: str) -> None:
    pushes = RefreshStatus(timedelta(minutes=3), timedelta(minutes=3), timedelta(minutes=1), None, None)
    held = Settled(Phase.HELD, "held by ann")
    credentials = CredentialVerdict(remaining, refreshed=pushes)
    printed = " ".join(shown(step=held, why="", lives=True, credentials=credentials).split())
    assert words in printed
    assert "pushed" not in printed


def test_streams_in_trouble_may_come_first() -> None:
    runs, rests = Settled(Phase.RUNNING, "it runs"), Settled(Phase.HELD, "it is held")
    progress = {pulse: ProgressVerdict(Heartbeat(pulse, timedelta(), "")) for pulse in Pulse}
    verdicts = {
        "a-runs": Verdict(runs, "", lives=True, progress=progress[Pulse.HEALTHY]),
        "b-rests": Verdict(rests, ""),
        "c-hangs": Verdict(runs, "", lives=True, progress=progress[Pulse.STALLED]),
        "d-ended": Verdict(Settled(Phase.ENDED, "it ended"), ""),
        "e-unknown": Verdict(None, "nobody answers"),
        "f-waits": Verdict(runs, "", lives=True, progress=progress[Pulse.IDLE]),
    }
    by_trouble, by_name = (
        [str(name) for name in streams_table(verdicts, by_trouble=first).columns[0].cells] for first in (True, False)
    )
    assert by_trouble == ["c-hangs", "d-ended", "e-unknown", "a-runs", "b-rests", "f-waits"]
    assert by_name == sorted(verdicts)
