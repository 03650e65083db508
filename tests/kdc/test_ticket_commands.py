"""`kstream tickets` and a real KDC: its output, exit codes and explanations."""

from __future__ import annotations

import re

import pytest

from airflow_kstream.minicluster.kdc import Kdc
from tests.commands import TicketCommands


@pytest.fixture
def kstream(kstream: TicketCommands, kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> TicketCommands:
    monkeypatch.setenv("COLUMNS", "300")
    kstream.declaration({"principal": kdc.principal("streamer"), "keytab": str(kdc.keytab("streamer"))})
    return kstream


def test_tickets_are_missing_then_acquired_then_fresh(kdc: Kdc, kstream: TicketCommands) -> None:
    before, renewed, listed = (kstream.on_cluster(word) for word in ("list", "renew", "list"))
    again, forced = kstream.on_cluster("renew", "--json"), kstream.on_cluster("renew", "--force", "--json")
    assert [ran.code for ran in (before, renewed, listed, again, forced)] == [1, 0, 0, 0, 0], renewed.err
    assert before.out.count("no ticket") == 2
    for name in ("watcher", "streamer"):
        assert f"{kdc.principal(name)}: acquired, good until 20" in renewed.out
    assert listed.out.count("fresh") == 2
    assert listed.out.count("renewable for ") == 2
    assert forced.data[1]["cache"] == str(kstream.cache(kdc.principal("streamer")))
    assert [report["outcome"] for report in again.data] == ["kept", "kept"]
    assert [report["outcome"] for report in forced.data] == ["acquired", "acquired"]


def test_what_is_listed_for_programs_tells_the_same(kdc: Kdc, kstream: TicketCommands) -> None:
    kstream.on_cluster("renew", "--principal", kdc.principal("streamer"))
    listed = kstream.on_cluster("list", "--json")
    watcher, streamer = listed.data
    assert listed.code == 1
    assert (watcher["state"], watcher["alert"]) == ("missing", True)
    assert (streamer["state"], streamer["alert"], streamer["failures"]) == ("fresh", False, 0)
    assert streamer["seconds_left"] == pytest.approx(kdc.plan.ticket_lifetime.total_seconds(), abs=30)
    assert (streamer["kvno"], streamer["enctype"]) == (1, "aes256-cts-hmac-sha1-96")


def test_a_broken_keytab_and_a_foreign_cache_are_rows_and_harm_no_other(kdc: Kdc, kstream: TicketCommands) -> None:
    mine, theirs = kstream.folder / "mine", kstream.folder / "theirs"
    kstream.declaration({"principal": kdc.principal("watcher"), "cache": str(mine)})
    kstream.on_cluster("renew")
    theirs.write_bytes(mine.read_bytes())
    kstream.declaration(
        {"principal": kdc.principal("gateway"), "keytab": str(kstream.folder / "gone.keytab")},
        {
            "principal": kdc.principal("streamer"),
            "keytab": str(kdc.keytab("streamer")),
            "cache": str(theirs),
        },
        {"principal": kdc.principal("hdfs"), "ticket_cache": "KCM:0"},
    )
    renewed, listed = kstream.on_cluster("renew"), kstream.on_cluster("list")
    assert (renewed.code, listed.code) == (1, 1)
    assert f"{kdc.principal('watcher')}: acquired" in renewed.out
    failed = rf"{kdc.principal('gateway')}: FAILED, 1 failure \d+s ago, the ticket at hand: no ticket"
    assert re.search(failed, renewed.out)
    assert "there is no such file" in renewed.out
    assert "it is a cache of watcher@KSTREAM.TEST: name another file for one of them" in renewed.out
    assert "it is a cache of watcher@KSTREAM.TEST" in listed.words
    assert "a KCM cache is kept by the system and is not a file" in listed.words
    assert "not renewed, 1 failure" in listed.words
    assert theirs.read_bytes() == mine.read_bytes()


def test_one_cache_is_shown_ticket_by_ticket_without_any_cluster(kdc: Kdc, kstream: TicketCommands) -> None:
    kstream.on_cluster("renew")
    cache = kstream.cache(kdc.principal("streamer"))
    shown, data = kstream.run("show", str(cache)), kstream.run("show", str(cache), "--json").data
    assert "krbtgt/KSTREAM.TEST@KSTREAM.TEST" in shown.out
    assert "aes256-cts-hmac-sha1-96, kvno 1" in shown.out
    assert (data[0]["kind"], data[0]["principal"]) == ("FILE", kdc.principal("streamer"))
    explained = kstream.run("show", "KEYRING:persistent:0")
    assert explained.code == 1
    assert "Java programs can't read it; give a keytab" in explained.err
    assert "Traceback" not in explained.err
