"""`kstream tickets` on the minicluster: its output, exit codes and explanations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from airflow_kstream.minicluster import Minicluster
from tests.live.cli import Ran, cluster_file, ran


@dataclass(frozen=True)
class Commands:
    """`kstream tickets`, in this process; the watcher's connection, and an order."""

    folder: Path

    def declaration(self, *principals: dict[str, str]) -> None:
        declaration = {"principals": list(principals), "folder": str(self.folder / "kept")}
        (self.folder / "order.yaml").write_text(yaml.safe_dump(declaration))

    def cache(self, principal: str) -> Path:
        """Return the path of a cache in the folder of the cluster's file."""
        (cache,) = (self.folder / "kept").glob(f"minicluster-*/{principal}.ccache")
        return cache

    def run(self, *words: str) -> Ran:
        return ran("tickets", *words)

    def on_cluster(self, *words: str) -> Ran:
        return self.run(
            *words, "--cluster", str(self.folder / "minicluster.yaml"), "--declaration", str(self.folder / "order.yaml")
        )


@pytest.fixture
def kstream(minicluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("COLUMNS", "300")
    cluster_file(minicluster, "watcher", tmp_path)
    commands = Commands(tmp_path)
    commands.declaration(
        {"principal": minicluster.principal("streamer"), "keytab": str(minicluster.keytab("streamer"))}
    )
    return commands


def test_tickets_are_missing_then_acquired_then_fresh(minicluster: Minicluster, kstream: Commands) -> None:
    before, renewed, listed = (kstream.on_cluster(word) for word in ("list", "renew", "list"))
    again, forced = kstream.on_cluster("renew", "--json"), kstream.on_cluster("renew", "--force", "--json")
    assert [ran.code for ran in (before, renewed, listed, again, forced)] == [1, 0, 0, 0, 0], renewed.err
    assert before.out.count("no ticket") == 2
    for name in ("watcher", "streamer"):
        assert f"{minicluster.principal(name)}: acquired, good until 20" in renewed.out
    assert listed.out.count("fresh") == 2
    assert listed.out.count("renewable for ") == 2
    assert forced.data[1]["cache"] == str(kstream.cache(minicluster.principal("streamer")))
    assert [report["outcome"] for report in again.data] == ["kept", "kept"]
    assert [report["outcome"] for report in forced.data] == ["acquired", "acquired"]


def test_what_is_listed_for_programs_tells_the_same(minicluster: Minicluster, kstream: Commands) -> None:
    kstream.on_cluster("renew", "--principal", minicluster.principal("streamer"))
    listed = kstream.on_cluster("list", "--json")
    watcher, streamer = listed.data
    assert listed.code == 1
    assert (watcher["state"], watcher["alert"]) == ("missing", True)
    assert (streamer["state"], streamer["alert"], streamer["failures"]) == ("fresh", False, 0)
    assert streamer["seconds_left"] == pytest.approx(minicluster.plan.ticket_lifetime.total_seconds(), abs=30)
    assert (streamer["kvno"], streamer["enctype"]) == (1, "aes256-cts-hmac-sha1-96")


def test_a_broken_keytab_and_a_foreign_cache_are_rows_and_harm_no_other(
    minicluster: Minicluster, kstream: Commands
) -> None:
    mine, theirs = kstream.folder / "mine", kstream.folder / "theirs"
    kstream.declaration({"principal": minicluster.principal("watcher"), "cache": str(mine)})
    kstream.on_cluster("renew")
    theirs.write_bytes(mine.read_bytes())
    kstream.declaration(
        {"principal": minicluster.principal("gateway"), "keytab": str(kstream.folder / "gone.keytab")},
        {
            "principal": minicluster.principal("streamer"),
            "keytab": str(minicluster.keytab("streamer")),
            "cache": str(theirs),
        },
        {"principal": minicluster.principal("hdfs"), "ticket_cache": "KCM:0"},
    )
    renewed, listed = kstream.on_cluster("renew"), kstream.on_cluster("list")
    assert (renewed.code, listed.code) == (1, 1)
    assert f"{minicluster.principal('watcher')}: acquired" in renewed.out
    failed = rf"{minicluster.principal('gateway')}: FAILED, 1 failure \d+s ago, the ticket at hand: no ticket"
    assert re.search(failed, renewed.out)
    assert "there is no such file" in renewed.out
    assert "it is a cache of watcher@KSTREAM.TEST: name another file for one of them" in renewed.out
    assert "it is a cache of watcher@KSTREAM.TEST" in listed.words
    assert "a KCM cache is kept by the system and is not a file" in listed.words
    assert "not renewed, 1 failure" in listed.words
    assert theirs.read_bytes() == mine.read_bytes()


def test_one_cache_is_shown_ticket_by_ticket_without_any_cluster(minicluster: Minicluster, kstream: Commands) -> None:
    kstream.on_cluster("renew")
    cache = kstream.cache(minicluster.principal("streamer"))
    shown, data = kstream.run("show", str(cache)), kstream.run("show", str(cache), "--json").data
    assert "krbtgt/KSTREAM.TEST@KSTREAM.TEST" in shown.out
    assert "aes256-cts-hmac-sha1-96, kvno 1" in shown.out
    assert (data[0]["kind"], data[0]["principal"]) == ("FILE", minicluster.principal("streamer"))
    explained = kstream.run("show", "KEYRING:persistent:0")
    assert explained.code == 1
    assert "Java programs can't read it; give a keytab" in explained.err
    assert "Traceback" not in explained.err


def test_a_principal_that_the_declaration_does_not_have_is_refused(kstream: Commands) -> None:
    refused = kstream.on_cluster("renew", "--principal", "nobody@KSTREAM.TEST")
    assert refused.code == 2
    assert "it has streamer@KSTREAM.TEST, watcher@KSTREAM.TEST" in refused.err
