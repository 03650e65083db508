"""Wrong input on the command line: it is refused with a clear sentence, and cannot control the terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_kstream.cli import main

ESC = "\x1b[2J"
BELL = "\x07"
C1 = "\x9b31m"
BYTES = "\udcff\udcfe"
WRONG, FAILED = 2, 1
AN_ID = "application_1700000000000_0001"
# Without a command, a group prints its help.
HELP = "streams"


@dataclass(frozen=True)
class Case:
    """Words of a command line; CLUSTER stands for a cluster whose servers are away, FOLDER for an empty folder."""

    words: str
    code: int
    expected: str

    def argv(self, cluster: Path, folder: Path) -> list[str]:
        named = self.words.replace("CLUSTER", f"--cluster {cluster}").replace("FOLDER", str(folder))
        return named.split(" ")


CASES = (
    Case(HELP, WRONG, "Usage"),
    Case("streams status", WRONG, "Missing option '--cluster'"),
    Case(f"{ESC}", WRONG, r"No such command"),
    Case(f"streams {ESC}", WRONG, r"No such command"),
    Case(f"streams status CLUSTER a {ESC}", WRONG, r"\x1b[2J"),
    Case(f"streams status CLUSTER a {BELL}", WRONG, r"\x07"),
    Case(f"streams status CLUSTER a {C1}", WRONG, r"\x9b31m"),
    Case(f"streams status CLUSTER a {BYTES}", WRONG, "unexpected extra argument"),
    Case(
        "streams status CLUSTER a b",
        WRONG,
        "(b): kstream streams status takes one NAME or none (The stream's name; all",
    ),
    Case(
        "leases list CLUSTER /a /b",
        WRONG,
        "(/b): kstream leases list takes one PATH (An absolute HDFS folder or file; of",
    ),
    Case(f"tickets list --{ESC}", WRONG, r"--\x1b[2J"),
    Case("tickets list --jsom", WRONG, "--json"),
    Case(f"streams stop CLUSTER {ESC}", WRONG, "allowed is 1 to 50 of a-z"),
    Case(f"streams hold CLUSTER {BYTES}", WRONG, "allowed is 1 to 50 of a-z"),
    Case("streams start CLUSTER orders --reason", WRONG, "--reason"),
    Case("streams plan CLUSTER FOLDER", WRONG, "is a directory"),
    Case("streams plan CLUSTER /nope.yaml", WRONG, "does not exist"),
    Case(f"streams plan CLUSTER /{ESC}.yaml", WRONG, "does not exist"),
    Case("streams take-over CLUSTER /nope.yaml", WRONG, "does not exist"),
    Case("streams take-over CLUSTER /etc/hosts --look-for soon", WRONG, "--look-for: 'soon' is not a duration"),
    Case("leases list CLUSTER data", WRONG, "data"),
    Case(f"leases list CLUSTER {ESC}", WRONG, r"\x1b[2J"),
    Case("leases list CLUSTER /data --min-age soon", WRONG, "--min-age: 'soon' is not a duration"),
    Case("leases list CLUSTER /data --min-age -5s", WRONG, "--min-age: '-5s' is not a duration"),
    Case(f"leases list CLUSTER /data --min-age {ESC}", WRONG, r"'\x1b[2J' is not a duration"),
    Case("leases recover CLUSTER /data --leak-after 1", WRONG, "--leak-after: '1' is not a duration"),
    Case("leases recover CLUSTER", WRONG, "Missing argument"),
    Case("leases recover CLUSTER data", WRONG, "data"),
    Case("leases recover CLUSTER /data --limits wild", WRONG, "wild"),
    Case(f"leases recover CLUSTER /data --limits {ESC}", WRONG, r"\x1b[2J"),
    Case(
        "leases recover CLUSTER /data --per-datanode 0",
        WRONG,
        "'--per-datanode': Input should be greater",
    ),
    Case("leases recover CLUSTER /data --in-all many", WRONG, "'--in-all': Input should be a valid integer"),
    Case(
        "leases recover CLUSTER /data --in-all 8 --per-datanode 9",
        WRONG,
        "per_datanode is 9; allowed is at most in_all",
    ),
    Case("leases recover CLUSTER /data --limits unlimited --in-all 8", WRONG, "so in_all can't be given"),
    Case("leases recover CLUSTER /data --deadline soon", WRONG, "--deadline: 'soon' is not a duration"),
    Case("leases recover CLUSTER /data --deadline 0s", WRONG, "deadline is 0s; allowed is 1s or longer"),
    Case("leases recover CLUSTER /data --backend magic", WRONG, "magic"),
    Case("leases recover CLUSTER /data --approve /data/a", WRONG, "approved_by"),
    Case("leases recover CLUSTER /data --allow =orders", WRONG, "PATTERN=APPLICATION"),
    Case(f"leases recover CLUSTER /data --allow ={ESC}", WRONG, r"\x1b[2J"),
    Case("leases explain CLUSTER data", WRONG, "data"),
    Case("leases history CLUSTER --since yesterday", WRONG, "--since: 'yesterday' is not a duration"),
    Case("leases history CLUSTER --since 99999999999w", WRONG, "longer than anything lasts"),
    Case("leases history CLUSTER data", WRONG, "data"),
    Case("tickets list --cluster /nope.yaml", WRONG, "/nope.yaml"),
    Case(f"tickets list --cluster /{ESC}.yaml", WRONG, r"/\x1b[2J.yaml"),
    Case(f"tickets list --cluster /{BYTES}.yaml", WRONG, r"/\udcff\udcfe.yaml"),
    Case("tickets list CLUSTER --declaration /nope", WRONG, "/nope"),
    Case("tickets list CLUSTER --principal nobody@EXAMPLE.COM", WRONG, "nobody@EXAMPLE.COM is not declared"),
    Case(f"tickets list CLUSTER --principal {ESC}", WRONG, r"\x1b[2J is not declared"),
    Case("tickets check CLUSTER --principal a@EXAMPLE.COM", WRONG, "--principal needs --keytab"),
    Case("tickets show", WRONG, "CACHE"),
    Case("tickets show FOLDER", FAILED, "there is no ticket cache in it"),
    Case("tickets show /nope", WRONG, "/nope can't be read: No such file"),
    Case("tickets show DIR:/nope", WRONG, "/nope can't be read: No such file"),
    Case(f"tickets show /{ESC}", WRONG, r"/\x1b[2J can't be read: No such file"),
    Case(f"tickets show {ESC}:x", WRONG, r"\x1b[2J"),
    Case("tokens show /nope", WRONG, "/nope"),
    Case("tokens show FOLDER", WRONG, "FOLDER"),
    Case(f"tokens show /{ESC}", WRONG, r"/\x1b[2J"),
    Case("tokens show application_1", WRONG, f"one looks like {AN_ID}"),
    Case("triage application_17", WRONG, f"one looks like {AN_ID}"),
    Case("triage /nope", WRONG, "/nope can't be read: No such file"),
    Case("triage /etc/hosts --html /etc/hosts", WRONG, "/etc/hosts exists already"),
    Case("doctor", WRONG, "KSTREAM_CLUSTER is not set"),
    Case("doctor CLUSTER --application-id 17", WRONG, f"one looks like {AN_ID}"),
    Case("doctor CLUSTER --stream a.b", WRONG, "allowed is 1 to 50 of a-z"),
    Case("streams status CLUSTER a.b", WRONG, "allowed is 1 to 50 of a-z"),
    Case(f"streams status CLUSTER {ESC}", WRONG, "allowed is 1 to 50 of a-z"),
    Case("streams status CLUSTER --watch --json", WRONG, "--watch and --json are both given"),
    Case("streams adopt CLUSTER /etc/hosts --application-id 17", WRONG, f"one looks like {AN_ID}"),
    Case("tokens push CLUSTER --application-id 17", WRONG, f"one looks like {AN_ID}"),
    Case("monitoring /etc/hosts", WRONG, "/etc/hosts"),
    Case("tokens show application_1_0001", WRONG, "can only be looked up with --cluster"),
    Case("tokens renew CLUSTER /nope", WRONG, "/nope"),
    Case("tokens renew CLUSTER /etc/hosts --as a@EXAMPLE.COM", WRONG, "--as needs --keytab"),
    Case("tokens cancel /etc/hosts", WRONG, "--cluster"),
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("KSTREAM_CLUSTER", raising=False)


def ended(*argv: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(argv)
    return int(end.value.code or 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.words))
def test_wrong_words_are_refused_clearly(
    case: Case, cluster_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    code = ended(*case.argv(cluster_file, folder))
    printed = capsys.readouterr()
    words = f"{printed.err}{printed.out}"
    assert code == case.code
    assert printed.err.startswith("" if case.words == HELP else "kstream: ")
    assert case.expected.replace("FOLDER", str(folder)) in words
    assert not {character for character in words if not character.isprintable()} - {"\n"}


def test_a_user_without_name_and_home_is_advised_to_name_a_folder(
    cluster_file: Path, nameless: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert ended("tickets", "list", "--cluster", str(cluster_file)) == WRONG
    complaint = capsys.readouterr().err
    assert "folder" in complaint
    assert "--declaration" in complaint


def test_the_command_line_reads_no_declaration_that_the_environment_names(
    cluster_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KSTREAM_TICKETS", "/nope")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert ended("tickets", "list", "--cluster", str(cluster_file), "--json") == FAILED
    assert [ticket["state"] for ticket in json.loads(capsys.readouterr().out)] == ["missing"]
