"""`kstream tickets` at a pipe's width, where caches, folders and keytabs are not as they should be."""

from __future__ import annotations

import json

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.kerberos.keytab import FindingKind
from tests.commands import TicketCommands
from tests.kdc.logins import login

NO_CACHE = b"garbage, and no cache\n"


def test_why_renewals_fail_is_kept_beside_their_count(kdc: Kdc, kstream: TicketCommands) -> None:
    gone = kstream.folder / "gone.keytab"
    kstream.declaration({"principal": kdc.principal("streamer"), "keytab": str(gone)})
    for _ in range(2):
        kstream.on_cluster("renew")
    listed, data = kstream.on_cluster("list"), kstream.on_cluster("list", "--json").data
    assert f"{kdc.principal('streamer')}: not renewed, 2 consecutive failures over" in listed.out
    assert f"log in from keytab {gone}" in listed.out
    assert "there is no such file" in data[1]["error"]


def test_a_list_is_readable_at_a_pipes_width(kdc: Kdc, kstream: TicketCommands) -> None:
    kstream.on_cluster("renew")
    listed, data = kstream.on_cluster("list"), kstream.on_cluster("list", "--json").data
    (row,) = (line for line in listed.out.splitlines() if kdc.principal("watcher") in line)
    assert "fresh" in row
    assert "renewable for " in listed.out
    assert "…" not in listed.out
    assert {"forwardable", "initial", "renewable"} <= set(data[0]["flags"])
    assert data[0]["cache"] == kstream.on_cluster("renew", "--json").data[0]["cache"]


def test_a_folder_that_takes_nothing_can_not_keep_the_count(kdc: Kdc, kstream: TicketCommands) -> None:
    (kstream.folder / "kept").touch()
    for _ in range(2):
        failed = kstream.on_cluster("renew")
        assert "FAILED, consecutive failures can't be counted" in failed.out
        assert "1 failure" not in failed.out
    assert kstream.on_cluster("renew", "--json").data[0]["counted"] is False


def test_a_copied_ticket_says_from_where(kdc: Kdc, kstream: TicketCommands) -> None:
    tickets.acquire(login(kdc, "streamer"), kstream.folder / "source")
    kstream.declaration({"principal": kdc.principal("streamer"), "ticket_cache": str(kstream.folder / "source")})
    assert f"{kdc.principal('streamer')}: copied from {kstream.folder}/source, good until" in (
        kstream.on_cluster("renew").out
    )


def test_a_cache_without_a_ticket_is_reported_and_is_no_success(kdc: Kdc, kstream: TicketCommands) -> None:
    cache = kstream.folder / "empty.cc"
    tickets.acquire(login(kdc, "streamer"), cache)
    # The header and the principal are whole; the rest is gone.
    whole, owner = cache.read_bytes(), b"\0\0\0\x08streamer"
    cache.write_bytes(whole[: whole.index(owner) + len(owner)])
    shown = kstream.run("show", str(cache))
    assert (shown.code, "no ticket in it" in shown.words) == (1, True)
    assert kstream.run("show", str(cache), "--json").code == 1


@pytest.mark.parametrize("prefix", ["", "DIR:", "FILE:"])
def test_a_folder_shows_every_cache_in_it(kdc: Kdc, kstream: TicketCommands, prefix: str) -> None:
    folder = kstream.folder / "many"
    for name, principal in (("watcher@R.ccache", "watcher"), ("krb5cc_0", "streamer"), ("tkt", "gateway")):
        tickets.acquire(login(kdc, principal), folder / name)
    (folder / "a.keytab").write_bytes(kdc.keytab("watcher").read_bytes())
    (folder / "torn.ccache").write_bytes(NO_CACHE)
    shown = kstream.run("show", f"{prefix}{folder}", "--json")
    principals = {cache["principal"] for cache in shown.data if "principal" in cache}
    assert principals == {kdc.principal(name) for name in ("watcher", "streamer", "gateway")}
    assert ["torn.ccache" in cache["error"] for cache in shown.data if "error" in cache] == [True]
    assert shown.code == 1


def test_the_folder_of_an_order_shows_those_of_each_cluster(kdc: Kdc, kstream: TicketCommands) -> None:
    kstream.on_cluster("renew")
    shown = kstream.run("show", str(kstream.folder / "kept"), "--json")
    assert [row["principal"] for row in shown.data] == [kdc.principal("watcher")]


def test_keytabs_are_checked_by_a_named_order_too(kdc: Kdc, kstream: TicketCommands) -> None:
    kstream.declaration({"principal": kdc.principal("streamer"), "keytab": str(kdc.keytab("streamer"))})
    checked = kstream.on_cluster("check", "--json")
    assert [row["principal"] for row in checked.data] == [kdc.principal("watcher"), kdc.principal("streamer")]


def test_a_keytab_that_is_not_there_is_a_finding(kstream: TicketCommands) -> None:
    checked = kstream.on_cluster("check", "--keytab", "/nope", "--json")
    assert checked.code == 1
    assert json.loads(checked.out)[0]["findings"][0]["kind"] == FindingKind.UNREADABLE.value


def test_the_columns_about_streams_are_absent_when_no_stream_is_concerned(kstream: TicketCommands) -> None:
    printed = kstream.on_cluster("check").out
    assert "remedy" in printed
    assert "when" not in printed.splitlines()[1]
    assert "watcher@KSTREAM.TEST" in printed
