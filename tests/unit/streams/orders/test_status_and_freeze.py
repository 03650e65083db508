"""`kstream streams status`, `freeze` and `unfreeze`, and what a frozen cluster answers to orders."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.authors import ALL_STREAMS
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from tests.simulated.folders import order_path
from tests.simulated.life import SPEC, Life
from tests.unit.streams.orders.conftest import CommandLine

FORETOLD = ("its second attempt will fail from 2026-05-14 03:12 UTC on (second-attempt)",)


def stop(life: Life) -> None:
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED


def test_freeze_says_what_it_covers_until_when_and_what_falls_into_it(kstream: CommandLine) -> None:
    kstream.life.clock.ahead += timedelta(days=6, hours=22)
    code, lines = kstream.run("freeze", "--reason", "a new NameNode", "--for", "3h", name="")
    assert code == 0
    assert lines[0].startswith("every stream of /kstream on hdfs://simulated is frozen until ")
    assert lines[0].endswith(": a new NameNode")
    assert lines[1].startswith("orders: its credentials end in 2h")
    assert len(lines) == 2
    assert kstream.generations == [True]


@pytest.mark.parametrize("lasts", ["0s", "8d", "soon"])
def test_a_freeze_lasts_for_a_week_at_most(kstream: CommandLine, lasts: str) -> None:
    code, lines = kstream.run("freeze", "--reason", "forever", "--for", lasts, name="")
    assert (code, "--for" in lines[-1]) == (2, True)


def test_status_shows_a_freeze(kstream: CommandLine) -> None:
    kstream.run("freeze", "--reason", "a new NameNode", name="")
    _, lines = kstream.run("status")
    assert any("every stream of /kstream" in line and "a new NameNode" in line for line in lines)
    assert any("application_1_0001 is RUNNING" in line and "; frozen" in line for line in lines)
    kstream.run("unfreeze", name="")
    assert not any("frozen" in line for line in kstream.run("status")[1])


def test_a_person_stops_a_stream_of_a_frozen_cluster_only_with_an_explicit_word(kstream: CommandLine) -> None:
    kstream.run("freeze", "--reason", "a new NameNode", name="")
    code, lines = kstream.run("stop")
    assert (code, kstream.generations) == (1, [True])
    assert "a new NameNode; give --despite-freeze to do it all the same" in lines[-1]
    assert kstream.life.watch().people.word is None, "no word stands that would stop it when the freeze ends"
    assert kstream.run("stop", "--despite-freeze")[0] == 0
    assert kstream.generations == [False]


@pytest.mark.parametrize("command", ["start", "restart"])
def test_what_a_person_wants_now_of_a_frozen_cluster_is_not_done(kstream: CommandLine, command: str) -> None:
    if command == "start":
        stop(kstream.life)
    before = kstream.generations
    kstream.run("freeze", "--reason", "a new NameNode", name="")
    code, lines = kstream.run(command, "--now")
    assert (code, kstream.generations) == (1, before)
    assert "the cluster is frozen until" in lines[-1]
    assert lines[-1].endswith("Retrying may help."), "a freeze ends by itself"
    assert kstream.run(command)[0] == 0, "the word stands, and counts when the freeze ends"


def test_a_freeze_that_cannot_be_read_ends_by_a_persons_word_alone(kstream: CommandLine) -> None:
    path = order_path(ALL_STREAMS)
    kstream.life.hdfs.write(path, "{")
    kstream.life.yarn.end("application_1_0001", ApplicationState.FAILED)
    for command in (("stop",), ("start", "--now")):
        code, lines = kstream.run(*command)
        assert (code, f"{path} of streamer can't be understood" in lines[-1]) == (1, True)
        assert lines[-1].endswith("Retrying will not help.")


def test_status_shows_what_runs_without_a_folder_and_the_command_for_it(kstream: CommandLine) -> None:
    kstream.life.hdfs.delete(kstream.life.run.id.folder, recursive=True)
    code, lines = kstream.run("status", name="")
    assert (code, len(kstream.generations)) == (0, 1)
    words = " ".join(" ".join(lines).replace("│", " ").split())
    assert "/kstream has no folder of this stream" in words
    assert "`kstream streams adopt SPEC.yaml --application-id application_1_0001` takes it up again" in words


def test_status_fails_where_nothing_could_be_read_of_a_stream(kstream: CommandLine) -> None:
    """A script asks the exit code; and a generation 0 would be none."""
    assert kstream.run("status")[0] == 0
    kstream.life.hdfs.write(f"{kstream.life.run.id.folder}/gen-000001", "{", overwrite=True)
    code, lines = kstream.run("status")
    assert code == 1
    assert "can't be understood" in " ".join(lines)
    code, printed = kstream.run("status", "--json", name="")
    shown = json.loads("".join(printed))
    assert (code, shown[SPEC.name]["step"], shown[SPEC.name]["generation"]) == (1, "unknown", None)


def test_a_claim_of_a_newer_version_is_named_with_the_way_out(kstream: CommandLine) -> None:
    """What its older generations left is the newer program's to tidy, and hides nothing of what is shown."""
    folder = kstream.life.run.id.folder
    kstream.life.hdfs.write(f"{folder}/push-000000-1767225600000-0", "{}")
    kstream.life.hdfs.write(f"{folder}/gen-000001", '{"version": 99, "nonce": "x"}', overwrite=True)
    code, lines = kstream.run("status")
    assert code == 0
    assert "its claim is of version 99, and this program reads up to 4" in " ".join(" ".join(lines).split())
    code, lines = kstream.run("stop")
    assert code == 2
    assert "use that version, or end what runs with `yarn application -kill`" in " ".join(lines)


def test_status_shows_what_the_doctor_expects_of_a_stream_with_its_date(kstream: CommandLine) -> None:
    kstream.foretold = {SPEC.name: FORETOLD}
    code, lines = kstream.run("status")
    assert code == 0
    assert FORETOLD[0] in " ".join(lines)
    _, printed = kstream.run("status", "--json")
    assert json.loads("".join(printed))[SPEC.name]["foretold"] == list(FORETOLD)


def test_unfreeze_says_what_it_lifted(kstream: CommandLine) -> None:
    assert kstream.run("unfreeze", name="")[1] == [
        "/kstream on hdfs://simulated is not frozen any longer; it was not frozen"
    ]
    kstream.run("freeze", "--reason", "a new NameNode", name="")
    code, lines = kstream.run("unfreeze", "--reason", "it is there", name="")
    assert (code, lines[0].endswith(": a new NameNode")) == (0, True)


def test_a_dry_run_tells_that_its_first_step_waits(kstream: CommandLine, tmp_path: Path) -> None:
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(SPEC.to_mapping()))
    kstream.life.request_restart()
    kstream.run("freeze", "--reason", "a new NameNode", name="")
    code, lines = kstream.run("reconcile", str(file), "--dry-run", name="")
    assert (code, kstream.generations) == (0, [True])
    assert "its stop waits for the end of the freeze" in lines[0]
    assert lines[-1].endswith(": a new NameNode")


def until_interrupted(life: Life, looks: int, away: Collection[int] = ()) -> None:
    """Let so many looks at the streams end, 15 s apart, and press Ctrl-C in the next; nobody answers the `away`."""
    began = life.clock.now()

    def at_request(request: str, about: str) -> None:
        number = (life.clock.now() - began) // timedelta(seconds=15) + 1
        if number > looks:
            raise KeyboardInterrupt
        if number in away:
            raise Unavailable("connection refused", tried=f"ask for {about}")

    life.hdfs.at_request = life.yarn.at_request = at_request


def test_watching_prints_the_time_and_a_table_at_each_look_until_ctrl_c(kstream: CommandLine) -> None:
    until_interrupted(kstream.life, looks=3)
    code, lines = kstream.run("status", "--watch", name="")
    assert code == 0
    assert len([line for line in lines if re.fullmatch(r"20\S+ \S+ UTC", line)]) == 3
    assert len([line for line in lines if "orders" in line and "is RUNNING" in line]) == 3


def test_servers_that_are_away_are_shown_and_end_no_watching(kstream: CommandLine) -> None:
    until_interrupted(kstream.life, looks=4, away=(1, 3))
    code, lines = kstream.run("status", "--watch", name="")
    shown = [line for line in lines if re.search("refused|nothing was seen|what follows|is RUNNING", line)]
    assert code == 0
    assert [re.search("refused|nothing was seen|what follows|is RUNNING", line)[0] for line in shown] == [  # type: ignore[index]
        *("refused", "nothing was seen"),
        "is RUNNING",
        *("refused", "what follows", "is RUNNING"),
        "is RUNNING",
    ]


def test_a_name_that_no_stream_has_is_not_watched(kstream: CommandLine) -> None:
    until_interrupted(kstream.life, looks=1)
    code, lines = kstream.run("status", "--watch", name="ordres")
    assert code == 1
    assert "did you mean orders?" in " ".join(lines)
