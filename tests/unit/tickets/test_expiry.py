"""Which tickets and tokens are about to expire, by a clock that the test holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_kstream.supervise.tickets.expiry import CheckedTicket, TicketExpiryCondition, WatchedCache, check
from tests.simulated.tickets import HOUR, NOW, expiring, write_cache

ME, YOU = "me@NOWHERE.TEST", "you@NOWHERE.TEST"


def test_a_check_is_one_line_for_people() -> None:
    assert expiring([HOUR, HOUR / 2, 2 * HOUR]).words == "file /t: 2 of 3 tokens expire within 1h"


@pytest.mark.parametrize("content", [None, b"garbage"])
def test_a_cache_without_a_ticket_is_due_before_all_others(tmp_path: Path, content: bytes | None) -> None:
    now = datetime.now(UTC)
    write_cache(tmp_path / "expired", ME, now - 2 * HOUR, now - HOUR, now)
    write_cache(tmp_path / "good", ME, now - HOUR, now + 9 * HOUR, now + 9 * HOUR)
    write_cache(tmp_path / "yours", YOU, now - HOUR, now + 9 * HOUR, now + 9 * HOUR)
    if content:
        (tmp_path / "none").write_bytes(content)
    caches = [{"principal": ME, "cache": str(tmp_path / name)} for name in ("good", "expired", "none", "yours")]
    checked = check(TicketExpiryCondition.from_mapping({"caches": caches, "within": "1h"}))
    assert [Path(ticket.watched.cache).name for ticket in checked.due] == ["none", "yours", "expired"]
    assert [row["state"] for row in checked.report()["expiring"]] == ["missing", "missing", "expired"]
    assert checked.report()["tickets"] == 4


def test_a_missing_ticket_has_no_time_left() -> None:
    assert CheckedTicket(WatchedCache(ME, "/nowhere"), None, "gone").remaining(NOW) < timedelta()
