"""Tickets where things are not as they should be: damaged caches, silent realms, folders that take nothing.

A KDC is all that they need.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.keytab import FindingKind
from airflow_kstream.policy.tickets.renewal import RenewalPolicy
from airflow_kstream.supervise.doctor.keytabs import check_keytabs
from airflow_kstream.supervise.tickets.declaration import TicketDeclaration, kept_tickets
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace
from airflow_kstream.supervise.tickets.managed import ManagedTicket
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport, renew_all, ticket_status
from tests.live.realms import realm
from tests.real.cluster.test_ticket_commands import Commands

NOWHERE = ("http://127.0.0.1:1",)
POLICY = RenewalPolicy()
NO_CACHE = b"garbage, and no cache\n"
SILENT = "SILENCE.TEST"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with pytest.MonkeyPatch.context() as patch, realm(tmp_path_factory.mktemp("realm"), patch) as kdc:
        yield kdc


@pytest.fixture
def silent_realm(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A realm beside the one that responds; its KDC takes every request and answers none."""
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        port = mute.getsockname()[1]
        conf = tmp_path / "silent.conf"
        conf.write_text(f"[realms]\n  {SILENT} = {{\n    kdc = 127.0.0.1:{port}\n  }}\n")
        monkeypatch.setenv("KRB5_CONFIG", f"{kdc.folders.krb5_conf}:{conf}")
        yield


@pytest.fixture
def kstream(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """`kstream tickets` at a pipe's width."""
    monkeypatch.setenv("COLUMNS", "80")
    fields = {
        "principal": kdc.principal("watcher"),
        "keytab_path": str(kdc.keytab("watcher")),
        "state_dir": "/kstream",
        "resourcemanagers": NOWHERE[0],
        "namenodes": NOWHERE[0],
        "default_fs": "hdfs://away",
    }
    (tmp_path / "minicluster.yaml").write_text(yaml.safe_dump(fields))
    commands = Commands(tmp_path)
    commands.declaration()
    return commands


def cluster(kdc: Kdc) -> Cluster:
    return Cluster("away", NOWHERE, NOWHERE, "hdfs://away", login(kdc, "watcher"), "/kstream")


def login(kdc: Kdc, name: str) -> Identity:
    return Identity(kdc.principal(name), str(kdc.keytab(name)))


def mute(kdc: Kdc, number: int, folder: Path) -> Identity:
    """A principal of the silent realm, with a keytab."""
    keytab = folder / f"mute{number}.keytab"
    keytab.write_bytes(kdc.keytab("streamer").read_bytes().replace(kdc.plan.realm.encode(), SILENT.encode()))
    keytab.chmod(0o600)
    return Identity(f"streamer@{SILENT}", str(keytab))


def renewed(*those: ManagedTicket, force: bool = False) -> list[RenewalReport]:
    return list(renew_all(those, POLICY, force=force))


def test_a_file_of_another_kind_is_replaced_in_our_own_folder_alone(kdc: Kdc, tmp_path: Path) -> None:
    declaration = {"principal": kdc.principal("streamer"), "keytab": str(kdc.keytab("streamer"))}
    named = {**declaration, "cache": str(tmp_path / "named")}
    for fields, outcome in ((declaration, RenewalOutcome.ACQUIRED), (named, RenewalOutcome.FAILED)):
        asked = TicketDeclaration.from_mapping({"principals": [fields], "folder": str(tmp_path / "ours")})
        one = kept_tickets(cluster(kdc), asked)[1]
        one.cache.parent.mkdir(parents=True, exist_ok=True)
        one.cache.write_bytes(NO_CACHE)
        (report,) = renewed(one, force=True)
        assert report.outcome is outcome, report.error
        assert (one.cache.read_bytes() == NO_CACHE) is (outcome is RenewalOutcome.FAILED)
    assert "it was named as the cache: delete it, or name another file" in report.error


def test_what_is_damaged_says_what_becomes_of_it(kdc: Kdc, tmp_path: Path) -> None:
    for ours, words in ((True, "the next renewal replaces it"), (False, "delete it, or name another file")):
        (tmp_path / "cache").write_bytes(NO_CACHE)
        status = ticket_status(ManagedTicket("away", login(kdc, "streamer"), tmp_path / "cache", ours), POLICY)
        assert status.error is not None
        assert words in status.error.message


def test_another_principals_cache_stays_in_our_own_folder_too(kdc: Kdc, tmp_path: Path) -> None:
    tickets.acquire(login(kdc, "watcher"), tmp_path / "cache")
    before = (tmp_path / "cache").read_bytes()
    (report,) = renewed(
        ManagedTicket("away", login(kdc, "streamer"), tmp_path / "cache", in_our_folder=True), force=True
    )
    assert "it is a cache of watcher@KSTREAM.TEST: delete it" in report.error
    assert (tmp_path / "cache").read_bytes() == before


@pytest.mark.usefixtures("silent_realm")
def test_a_silent_realm_delays_no_other_and_is_waited_for_once(kdc: Kdc, tmp_path: Path) -> None:
    """libkrb5 waits for 25 s; the realm's seven principals come first, and wait that long once, all together."""
    silent = [ManagedTicket("away", mute(kdc, number, tmp_path), tmp_path / f"mute{number}") for number in range(7)]
    began = time.time()
    *unanswered, streamer = renewed(*silent, ManagedTicket("away", login(kdc, "streamer"), tmp_path / "streamer"))
    assert time.time() - began < 45
    assert {report.outcome for report in unanswered} == {RenewalOutcome.FAILED}
    assert streamer.outcome is RenewalOutcome.ACQUIRED
    assert (tmp_path / "streamer").stat().st_mtime - began < 20


@pytest.mark.usefixtures("silent_realm")
def test_a_check_waits_once_for_a_silent_kdc(kdc: Kdc, tmp_path: Path) -> None:
    watcher = mute(kdc, 0, tmp_path)
    away = Cluster("away", NOWHERE, NOWHERE, "hdfs://away", watcher, "/kstream")
    other = KeytabPlace(watcher.principal, str(mute(kdc, 1, tmp_path).keytab))
    began = time.time()
    checks = list(check_keytabs(away, None, [other]))
    assert time.time() - began < 45
    assert [check.findings[0].kind for check in checks] == [FindingKind.UNREACHABLE] * 2
    assert "no KDC of SILENCE.TEST answered an earlier request of this round" in checks[1].findings[0].words


def test_why_renewals_fail_is_kept_beside_their_count(kdc: Kdc, kstream: Commands) -> None:
    gone = kstream.folder / "gone.keytab"
    kstream.declaration({"principal": kdc.principal("streamer"), "keytab": str(gone)})
    for _ in range(2):
        kstream.on_cluster("renew")
    listed, data = kstream.on_cluster("list"), kstream.on_cluster("list", "--json").data
    assert f"{kdc.principal('streamer')}: not renewed, 2 consecutive failures over" in listed.out
    assert f"log in from keytab {gone}" in listed.out
    assert "there is no such file" in data[1]["error"]


def test_a_list_is_readable_at_a_pipes_width(kdc: Kdc, kstream: Commands) -> None:
    kstream.on_cluster("renew")
    listed, data = kstream.on_cluster("list"), kstream.on_cluster("list", "--json").data
    (row,) = (line for line in listed.out.splitlines() if kdc.principal("watcher") in line)
    assert "fresh" in row
    assert "renewable for " in listed.out
    assert "…" not in listed.out
    assert {"forwardable", "initial", "renewable"} <= set(data[0]["flags"])
    assert data[0]["cache"] == kstream.on_cluster("renew", "--json").data[0]["cache"]


def test_a_folder_that_takes_nothing_can_not_keep_the_count(kdc: Kdc, kstream: Commands) -> None:
    (kstream.folder / "kept").touch()
    for _ in range(2):
        failed = kstream.on_cluster("renew")
        assert "FAILED, consecutive failures can't be counted" in failed.out
        assert "1 failure" not in failed.out
    assert kstream.on_cluster("renew", "--json").data[0]["counted"] is False


def test_a_copied_ticket_says_from_where(kdc: Kdc, kstream: Commands) -> None:
    tickets.acquire(login(kdc, "streamer"), kstream.folder / "source")
    kstream.declaration({"principal": kdc.principal("streamer"), "ticket_cache": str(kstream.folder / "source")})
    assert f"{kdc.principal('streamer')}: copied from {kstream.folder}/source, good until" in (
        kstream.on_cluster("renew").out
    )


def test_a_cache_without_a_ticket_is_reported_and_is_no_success(kdc: Kdc, kstream: Commands) -> None:
    cache = kstream.folder / "empty.cc"
    tickets.acquire(login(kdc, "streamer"), cache)
    # The header and the principal are whole; the rest is gone.
    whole, owner = cache.read_bytes(), b"\0\0\0\x08streamer"
    cache.write_bytes(whole[: whole.index(owner) + len(owner)])
    shown = kstream.run("show", str(cache))
    assert (shown.code, "no ticket in it" in shown.words) == (1, True)
    assert kstream.run("show", str(cache), "--json").code == 1


@pytest.mark.parametrize("prefix", ["", "DIR:", "FILE:"])
def test_a_folder_shows_every_cache_in_it(kdc: Kdc, kstream: Commands, prefix: str) -> None:
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


def test_nothing_in_an_error_is_an_emoji(kstream: Commands) -> None:
    assert "read the ticket cache MEMORY:x:" in kstream.run("show", "MEMORY:x").err


def test_the_folder_of_an_order_shows_those_of_each_cluster(kdc: Kdc, kstream: Commands) -> None:
    kstream.on_cluster("renew")
    shown = kstream.run("show", str(kstream.folder / "kept"), "--json")
    assert [row["principal"] for row in shown.data] == [kdc.principal("watcher")]


def test_an_empty_folder_is_named(kstream: Commands) -> None:
    (kstream.folder / "nothing").mkdir()
    assert "there is no ticket cache in it" in kstream.run("show", str(kstream.folder / "nothing")).err


def test_keytabs_are_checked_by_a_named_order_too(kdc: Kdc, kstream: Commands) -> None:
    kstream.declaration({"principal": kdc.principal("streamer"), "keytab": str(kdc.keytab("streamer"))})
    checked = kstream.on_cluster("check", "--json")
    assert [row["principal"] for row in checked.data] == [kdc.principal("watcher"), kdc.principal("streamer")]


def test_a_keytab_that_is_not_there_is_a_finding(kstream: Commands) -> None:
    checked = kstream.on_cluster("check", "--keytab", "/nope", "--json")
    assert checked.code == 1
    assert json.loads(checked.out)[0]["findings"][0]["kind"] == FindingKind.UNREADABLE.value


def test_a_missing_field_of_a_declaration_is_reported_with_its_file(kdc: Kdc, kstream: Commands) -> None:
    kstream.declaration({"principal": kdc.principal("gateway")})
    refused = kstream.on_cluster("renew")
    assert refused.code == 2
    assert f"{kstream.folder}/order.yaml: gateway@KSTREAM.TEST needs one of keytab or ticket_cache" in refused.err


def test_a_folder_of_declarations_is_searched_for_the_cluster(kdc: Kdc, kstream: Commands) -> None:
    (kstream.folder / "declarations").mkdir()
    keytab = {"principal": kdc.principal("gateway"), "keytab": str(kdc.keytab("gateway"))}
    (kstream.folder / "declarations" / "minicluster.yaml").write_text(yaml.safe_dump({"principals": [keytab]}))
    command = ("list", "--json", "--cluster", os.fspath(kstream.folder / "minicluster.yaml"), "--declaration")
    listed = kstream.run(*command, os.fspath(kstream.folder / "declarations"))
    assert [row["principal"] for row in listed.data] == [kdc.principal("watcher"), kdc.principal("gateway")]


def test_a_declaration_that_is_not_there_is_missed(kstream: Commands) -> None:
    refused = kstream.run("list", "--cluster", os.fspath(kstream.folder / "minicluster.yaml"), "--declaration", "/nope")
    assert refused.code == 2
    assert "/nope can't be read" in refused.err


def test_the_columns_about_streams_are_absent_when_no_stream_is_concerned(kstream: Commands) -> None:
    printed = kstream.on_cluster("check").out
    assert "remedy" in printed
    assert "when" not in printed.splitlines()[1]
    assert "watcher@KSTREAM.TEST" in printed
