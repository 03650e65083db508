"""The life of a token from a ResourceManager's log: seven days of renewals, the last one, and its end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_kstream.cli import main
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.kerberos.tokens import TokenEventKind
from airflow_kstream.supervise.triage.scan import histories_in

WRITER = "org.apache.hadoop.yarn.server.resourcemanager.security.DelegationTokenRenewer"
APP, OTHER = "application_1700000000001_0042", "application_1700000000001_0043"
BEGAN = datetime(2026, 2, 22, 10, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
BERLIN = timezone(timedelta(hours=1))


def milliseconds(when: datetime) -> int:
    return int(when.timestamp() * 1000)


def token(ident: str) -> str:
    return f"Kind: HDFS_DELEGATION_TOKEN, Service: ha-hdfs:prod, Ident: ({ident})"


SHORT = token("HDFS_DELEGATION_TOKEN token 17 for alice")
LONG = token(
    "token for alice: HDFS_DELEGATION_TOKEN owner=alice, renewer=yarn, realUser=, "
    f"issueDate={milliseconds(BEGAN)}, maxDate={milliseconds(BEGAN + 7 * DAY)}, sequenceNumber=18, masterKeyId=4"
)


def said(when: datetime, words: str, level: str = "INFO") -> str:
    """A line as a ResourceManager in Berlin writes it."""
    return f"{when.astimezone(BERLIN):%Y-%m-%d %H:%M:%S},000 {level} {WRITER}: {words}\n"


def renewed(when: datetime, ident: str, app: str = APP) -> str:
    until = min(when + DAY, BEGAN + 7 * DAY)
    return said(when, f"Renewed delegation-token= [{ident};exp={milliseconds(until)}; apps=[{app}]]")


def week(ident: str, app: str = APP) -> str:
    """Renewals at 90 % of a day each, until the token's end comes near."""
    renewals = "".join(renewed(BEGAN + number * 0.9 * DAY, ident, app) for number in range(8))
    last = BEGAN + 7 * DAY
    limit = f"{last.astimezone(BERLIN):%Y-%m-%d %H:%M:%S},000+0100"
    failed = said(last, f"Exception renewing token{ident}. Not rescheduled", "ERROR")
    why = f"SecretManager$InvalidToken: yarn tried to renew an expired token {ident} max expiration date: {limit}\n"
    end = said(last, f"removing failed delegation token for appid=[{app}];t=ha-hdfs:prod", "ERROR")
    return renewals + renewed(last - timedelta(minutes=1), ident, app) + failed + why + end


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "yarn-resourcemanager.log"
    file.write_text(said(BEGAN, "an unrelated line") + week(SHORT) + week(LONG, OTHER))
    return file


def test_a_token_is_renewed_at_nine_tenths_until_its_max_date(log: Path) -> None:
    (history,) = histories_in(log, APP)
    assert (history.number, history.owner, history.service) == (17, "alice", "ha-hdfs:prod")
    assert history.max_date == BEGAN + 7 * DAY
    assert history.good_until == history.max_date
    assert len(history.renewals) == 9
    assert history.usual_share == pytest.approx(0.9)
    assert [event.kind for event in history.events[-2:]] == [TokenEventKind.FAILED, TokenEventKind.REMOVED]


def test_the_zone_of_the_log_is_that_in_which_it_writes_the_max_date(log: Path) -> None:
    (history,) = histories_in(log, APP)
    assert history.events[0].when == BEGAN
    assert history.events[-1].when == BEGAN + 7 * DAY


def test_hadoop_3_names_the_dates_in_each_line(log: Path) -> None:
    (history,) = histories_in(log, OTHER)
    assert (history.issued, history.max_date) == (BEGAN, BEGAN + 7 * DAY)


def test_without_an_exception_the_last_two_renewals_show_the_max_date(tmp_path: Path) -> None:
    (tmp_path / "rm.log").write_text(week(SHORT).partition("Exception")[0].rpartition("\n")[0] + "\n")
    (history,) = histories_in(tmp_path)
    assert history.max_date == BEGAN + 7 * DAY


@pytest.mark.parametrize("until", [253402300799999, 10**20])
def test_an_end_at_which_no_calendar_goes_on_is_not_known(tmp_path: Path, until: int) -> None:
    (tmp_path / "rm.log").write_text(said(BEGAN, f"Renewed delegation-token= [{SHORT};exp={until}; apps=[{APP}]]"))
    (history,) = histories_in(tmp_path, zone=BERLIN)
    assert history.good_until is None


def test_a_log_without_tokens_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rm.log").write_text(said(BEGAN, "an unrelated line"))
    with pytest.raises(NotFound, match="no line tells of a token of application_17_0001"):
        histories_in(tmp_path, "application_17_0001")


def test_the_command_shows_a_table_json_and_a_page(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "tokens.html"
    for words, expected in (
        ((), "HDFS_DELEGATION_TOKEN 17 of alice, for ha-hdfs:prod"),
        (("--html", str(page)), "renewed 9 times, usually at 90% of the time that was left"),
    ):
        with pytest.raises(SystemExit):
            main(["tokens", "history", str(log), "--application-id", APP, *words])
        assert expected in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["tokens", "history", str(log), "--json"])
    assert [each["number"] for each in json.loads(capsys.readouterr().out)] == [17, 18]
    assert page.read_text().count("<circle") == 12
