"""Logs in files and folders of this host, and `kstream triage` on them."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from airflow_kstream.cli import main
from airflow_kstream.clients.local.log_files import blocks_of, plain_parts
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.log_scan.sections import Section
from airflow_kstream.model.logs.log_line import HEAD
from airflow_kstream.supervise.triage.scan import own_catalogue, scanned_logs, scanner_of, triage_path
from tests.differences import first_difference
from tests.simulated.logs import AGGREGATED, DRIVER, EXECUTOR, died, driver, executor, failing, stopped

FULL = "java.io.IOException: No space left on device"
LOG = driver(failing("10:00:00", "failed", FULL), died("10:00:01"))


def triaged(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["triage", *words])
    shown = capsys.readouterr()
    return end.value.code or 0, shown.out, shown.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application's logs as a person has copied them: one is compressed, one is not a log at all."""
    for name, text in ((DRIVER, LOG), (EXECUTOR, executor(stopped("10:00:02")))):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "core.1234").write_bytes(b"\x7fELF\0\0" * 100)
    (tmp_path / ".part.crc").write_bytes(b"\0crc")
    return tmp_path


@pytest.mark.parametrize("pack", [gzip, bz2, lzma])
def test_a_compressed_log_is_recognised_by_its_bytes(tmp_path: Path, pack: ModuleType) -> None:
    file = tmp_path / "stderr"
    file.write_bytes(pack.compress(LOG.encode()))
    assert triage_path(file, own_catalogue()).cause == "disk-full"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_log_that_windows_wrote_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "stderr"
    file.write_bytes(LOG.encode(encoding))
    verdict = triage_path(file, own_catalogue())
    assert (verdict.cause, verdict.confidence) == ("disk-full", "high")


HOLES = {
    "a log that was emptied while it was written": b"\0" * 5_000_000 + LOG.encode(),
    "a host that crashed": LOG.encode().replace(b"\n", b"\n\0\0", 1),
}


@pytest.mark.parametrize("hole", HOLES)
def test_zeros_in_a_log_hide_nothing(tmp_path: Path, hole: str) -> None:
    file = tmp_path / "stderr"
    file.write_bytes(HOLES[hole])
    verdict = triage_path(file, own_catalogue())
    assert (verdict.cause, verdict.confidence) == ("disk-full", "high")


@pytest.mark.parametrize("content", [b"\0" * 5_000_000, b"\0" * 9 + b"\x7fELF\2\1\1" + b"\0\1\2a" * 99])
def test_zeros_alone_and_programs_are_no_log(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "stderr"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match="it is not text"):
        triage_path(file, own_catalogue())


def test_a_folder_is_one_application(folder: Path) -> None:
    verdict = triage_path(folder, own_catalogue())
    assert verdict.evidence is not None
    assert (verdict.cause, verdict.evidence.source.file) == ("disk-full", f"{DRIVER}.gz")
    assert verdict.scanned.logs == 2
    assert verdict.scanned.unread == ("core.1234: it is not text",)


def test_what_is_no_file_is_named_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(folder / "nowhere")
    verdict = triage_path(folder, own_catalogue())
    assert verdict.cause == "disk-full"
    assert {"pipe: it is not a regular file", "link: it is not a regular file"} < set(verdict.scanned.unread)


def test_a_damaged_log_is_named_and_hides_no_other(folder: Path) -> None:
    whole = (folder / f"{EXECUTOR}.gz").read_bytes()
    (folder / f"{EXECUTOR}.gz").write_bytes(whole[: len(whole) // 2])
    verdict = triage_path(folder, own_catalogue())
    assert verdict.cause == "disk-full"
    assert any(EXECUTOR in why and "can't be read" in why for why in verdict.scanned.unread)


# Numbers as Hadoop writes them: a byte for a small one, also for a negative one.
_INDEX = b"\x01\x11data:BCFile.index\x04none"
_NO_PLACES = {
    "an index before the beginning": (_INDEX + b"\0\0\0", -5),
    "an index that no file reaches": (_INDEX + b"\0\0\0", 2**63 - 1),
    "a block before the beginning": (_INDEX + b"\xfb\x01\x01", 0),
    "a block of fewer bytes than none": (_INDEX + b"\0\xfb\x01", 0),
    "a compressed block before the beginning": (_INDEX.replace(b"\4none", b"\2gz") + b"\xfb\x01\x01", 0),
    "more blocks than a file has": (_INDEX + b"\x1b\0\0\4none\x90\x10\0\1" + bytes(4 << 20), 0),
}


@pytest.mark.parametrize(("content", "index"), _NO_PLACES.values(), ids=_NO_PLACES)
def test_an_aggregated_log_that_names_no_place_of_a_file_is_damaged(folder: Path, content: bytes, index: int) -> None:
    end = (AGGREGATED / "plain.tfile").read_bytes()[-20:]
    (folder / "node1_45454").write_bytes(content + index.to_bytes(8, signed=True) + end)
    verdict = triage_path(folder, own_catalogue())
    assert verdict.cause == "disk-full"
    (why,) = (why for why in verdict.scanned.unread if why.startswith("node1_45454"))
    assert why.startswith("node1_45454: it is damaged: ")


class Confused(Scanner):
    """A scanner with a fault: it breaks at one log."""

    def scan(self, blocks: Iterable[bytes], threads: int = 1) -> list[Section]:
        whole = b"".join(blocks)
        if b"confusing" in whole:
            raise RecursionError("too deep")
        return super().scan(iter([whole]), threads)


def test_a_log_that_breaks_the_scan_is_named_and_hides_no_other(folder: Path) -> None:
    (folder / "a").write_text("confusing\n")
    known = scanner_of(own_catalogue())
    logs, unread = scanned_logs(folder, Confused(known.patterns, HEAD))
    assert [log.name for log in logs] == [f"{DRIVER}.gz", f"{EXECUTOR}.gz"]
    assert "a: RecursionError: too deep" in unread


def test_a_log_that_yarn_aggregated_is_read_as_it_lies_on_hdfs() -> None:
    """Real TFiles, of Hadoop's own writer: plain, and gzipped in chunks. Each container's file is a log."""
    logs = {file.name: triage_path(file, own_catalogue()).scanned.logs for file in AGGREGATED.iterdir()}
    assert logs == {"plain.tfile": 12, "chunked.gz.tfile": 12}


def test_a_plain_log_is_cut_at_lines_ends_and_no_other_one_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "stderr"
    file.write_text(LOG * 20)
    parts = plain_parts(file, 3, 100)
    assert len(parts) == 3
    read = [b"".join(blocks_of(file, part)) for part in parts]
    assert not first_difference(b"".join(read), file.read_bytes())
    assert all(part.endswith(b"\n") for part in read)
    for content in (gzip.compress(file.read_bytes(), 0), b"\0" * 1000, b"x" * 1000, LOG.encode()):
        file.write_bytes(content)
        assert len(plain_parts(file, 3, max(len(content) // 3, len(LOG)))) < 2
    assert plain_parts(AGGREGATED / "plain.tfile", 3, 100) == []


@pytest.mark.parametrize(("name", "complaint"), [("missing", "No such file"), ("empty", "it has no files")])
def test_nothing_to_read_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=complaint):
        triage_path(tmp_path / name, own_catalogue())


def test_the_report_names_cause_place_and_remedy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = triaged(capsys, str(folder))
    assert code == 0
    assert "CAUSE: a disk is full (confidence: high)" in out
    assert f"first seen: {DRIVER}.gz:5, driver, 2026-03-01 10:00:00" in out
    assert "remedy: Free it" in out
    assert "not read: core.1234: it is not text" in out


def test_json_has_the_whole_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = triaged(capsys, str(folder), "--json")
    verdict = json.loads(out)
    assert code == 0
    assert (verdict["outcome"], verdict["cause"], verdict["confidence"]) == ("cause", "disk-full", "high")
    assert verdict["evidence"]["line"] == 5
    assert verdict["chain"] == ["disk-full", "final-status-failed", "container-launch-failed", "sigterm"]


def test_what_is_unknown_ends_with_1_and_shows_the_new_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stderr").write_text(
        driver(failing("10:00:00", "failed", "LedgerException: entry 4711"), died("10:00:01"))
    )
    code, out, _ = triaged(capsys, str(tmp_path))
    assert code == 1
    assert out.startswith("unknown: it failed, and no signature explains it")
    assert "1x (new) Caused by: LedgerException: entry #" in out


def test_a_log_drives_no_terminal_and_shows_no_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = f"\x1b[2J[red]\x07 https://ada:hunter2@host/x password=hunter2 {FULL}"
    (tmp_path / "stderr").write_text(driver(failing("10:00:00", "failed", hostile), died("10:00:01")))
    for words in ((), ("--json",)):
        _, out, _ = triaged(capsys, str(tmp_path), *words)
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "hunter2" not in out
    assert "[red]" in triaged(capsys, str(tmp_path))[1]


def test_a_zone_that_is_none_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = triaged(capsys, str(folder), "--time-zone", "Mars/Olympus")
    assert code == 2
    assert "allowed is a name such as Europe/Berlin" in err


def test_logs_without_a_zone_are_read_in_the_given_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = triaged(capsys, str(folder), "--json", "--time-zone", "Asia/Shanghai")
    assert json.loads(out)["evidence"]["when"] == "2026-03-01T10:00:00+08:00"
