"""Orders, plans, adoptions and take-overs by `kstream streams`, with and without `--now`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from airflow_kstream.cli import main
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.resume import StartWord
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.commands import ran
from tests.simulated.flink import metadata
from tests.simulated.folders import order_path
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER
from tests.unit.streams.orders.conftest import CommandLine, cluster_file

# The stream of the fake engine, whose declaration says that nothing acts on it.
NO_CLIENT, ANOTHER_CLIENT = "", "/opt/spark3/bin/spark-submit"


NEVER = "--never-submitted"


HORIZON = (
    "; its horizon is in 6d 23h (the delegation token reaches its max-lifetime and nobody makes another), "
    "and nobody restarts it before `kstream streams start orders`"
)


@pytest.mark.parametrize(
    ("deploy", "options", "client", "code"),
    [
        ("", (), "bin/spark-submit", 0),
        ("deploy: {spark_submit: spark3-submit}", (), "bin/spark3-submit", 0),
        ("deploy: {spark_submit: spark3-submit}", ("--spark-submit", ANOTHER_CLIENT), ANOTHER_CLIENT, 1),
    ],
)
def test_plan_names_the_client_of_the_declaration_or_the_persons(
    deploy: str,
    options: tuple[str, ...],
    client: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("spark-submit", "spark3-submit"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).touch(mode=0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    spec = tmp_path / "orders.yaml"
    spec.write_text(
        f"name: orders\ncredentials: {{mode: ticket}}\napplication: /jobs/orders.py\ncheckpoints: none\n{deploy}"
    )
    with pytest.raises(SystemExit) as end:
        main(["streams", "plan", "--cluster", str(cluster_file(tmp_path)), str(spec), *options])
    assert end.value.code == code
    planned = capsys.readouterr().out.splitlines()
    assert str(tmp_path / client) in planned
    assert planned[0].startswith("# blocked: can't be submitted from here: this host has no Spark") is bool(code)


def desired_of(life: Life) -> Desired:
    folder = life.run.folder
    return folder.desired(folder.newest_order(folder.authored(), life.run.session.state.look()))


def stop(life: Life) -> None:
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED


def test_start_writes_the_desired_state_and_submits_nothing(kstream: CommandLine) -> None:
    stop(kstream.life)
    assert kstream.run("start", "--reason", "the window is over") == (0, ["orders: running"])
    assert kstream.generations == [False]
    desired = desired_of(kstream.life)
    assert (desired.state, desired.reason) == (DesiredState.RUNNING, "the window is over")


def test_start_now_submits_the_next_generation_from_here(kstream: CommandLine) -> None:
    stop(kstream.life)
    code, lines = kstream.run("start", "--now")
    assert (code, kstream.generations) == (0, [False, True])
    assert lines[0] == "orders: running"
    assert any(line.startswith("submitted generation 2 as application_1_0002") for line in lines)
    assert lines[-1].startswith("orders is running: ")
    assert kstream.clients == [NO_CLIENT]


def test_start_now_submits_with_the_client_that_is_named(kstream: CommandLine) -> None:
    stop(kstream.life)
    assert kstream.run("start", "--now", "--spark-submit", ANOTHER_CLIENT)[0] == 0
    assert kstream.clients == [ANOTHER_CLIENT]


def test_start_now_leaves_a_running_generation_alone(kstream: CommandLine) -> None:
    code, lines = kstream.run("start", "--now")
    assert (code, kstream.generations) == (0, [True])
    assert lines[0] == "orders: running"
    assert lines[-1].startswith("orders is running: ")


def test_restart_requests_and_replaces_nothing(kstream: CommandLine) -> None:
    assert kstream.run("restart") == (
        0,
        ["generation 1 of orders is to be replaced: its supervisor begins at its next look"],
    )
    assert kstream.generations == [True]
    assert kstream.life.watch().calls_for_action


def test_restart_now_replaces_the_generation_from_here_and_once(kstream: CommandLine) -> None:
    code, lines = kstream.run("restart", "--now", "--spark-submit", ANOTHER_CLIENT)
    assert (code, kstream.generations) == (0, [False, True])
    assert lines[0] == "generation 1 of orders is to be replaced"
    assert any("it stopped with a savepoint" in line for line in lines)
    assert lines[-1].startswith("orders is running: ")
    assert kstream.clients == [ANOTHER_CLIENT]
    assert not kstream.life.watch().calls_for_action
    assert kstream.life.reconcile().generation == 2


def test_restart_now_keeps_the_generation_if_this_host_cannot_submit_the_next(kstream: CommandLine) -> None:
    kstream.life.engine.obstacle = "this host has no fake-run"
    code, lines = kstream.run("restart", "--now")
    assert (code, kstream.generations) == (1, [True])
    assert "this host has no fake-run; the current generation keeps running" in lines[-1]


def test_restart_of_a_stopped_stream_tells_to_start_it_first(kstream: CommandLine) -> None:
    stop(kstream.life)
    code, lines = kstream.run("restart", "--now")
    assert (code, kstream.generations) == (1, [False])
    assert "its desired state is stopped; run `kstream streams start orders` first" in lines[-1]


def test_a_stream_can_be_held_before_it_was_ever_submitted(at_first: CommandLine) -> None:
    assert at_first.run("hold", NEVER, "--reason", "not before Monday") == (0, ["orders: held; it was never submitted"])
    report = at_first.life.begin()
    assert (report.phase, report.generation, at_first.generations) == (Phase.HELD, 0, [])
    assert "not before Monday; it was never submitted" in report.why
    assert not at_first.life.watch().calls_for_action
    assert at_first.run("start")[0] == 0
    assert at_first.life.watch().calls_for_action
    assert at_first.life.begin().generation == 1


def test_a_stream_can_be_stopped_before_it_was_ever_submitted(at_first: CommandLine) -> None:
    code, lines = at_first.run("stop", NEVER)
    assert (code, at_first.generations) == (0, [])
    assert lines[-1].startswith("orders is stopped: ")
    assert at_first.life.begin().phase is Phase.STOPPED
    assert at_first.run("start") == (0, ["orders: running"])
    assert at_first.life.begin().generation == 1


def test_start_now_without_a_declaration_says_where_to_give_one(at_first: CommandLine) -> None:
    at_first.run("stop", NEVER)
    code, lines = at_first.run("start", "--now")
    assert (code, at_first.generations) == (1, [])
    assert "no generation of it was ever claimed; run `kstream streams reconcile` with its declaration" in lines[-1]


def test_what_cannot_be_a_streams_name_is_not_held(at_first: CommandLine) -> None:
    files = set(at_first.life.hdfs.files)
    code, lines = at_first.run("hold", name="../other")
    assert code != 0
    assert "name is '../other'" in lines[-1]
    assert set(at_first.life.hdfs.files) == files


def test_a_persons_first_word_makes_no_folder_of_the_stream(at_first: CommandLine) -> None:
    """It lies in his own: the stream's is made by whoever submits it, and nobody else writes there."""
    hdfs = at_first.life.hdfs
    hdfs.modes[CLUSTER.state_dir] = "1777"
    at_first.run("hold", NEVER)
    assert hdfs.list(at_first.life.run.id.folder) == ()
    assert at_first.life.run.id.folder not in hdfs.modes
    assert hdfs.modes[order_path(at_first.life.run.id).rpartition("/")[0]] == "755"
    at_first.run("start")
    at_first.life.begin()
    assert hdfs.modes[at_first.life.run.id.folder] == "755"


@pytest.mark.parametrize("word", ["hold", "stop", "start", "restart", "evidence"])
def test_a_mistyped_name_is_no_stream_and_names_those_that_are(kstream: CommandLine, word: str) -> None:
    files = set(kstream.life.hdfs.files)
    code, lines = kstream.run(word, name="ordres")
    assert code == 1
    assert f"{CLUSTER.state_dir} has orders (did you mean orders?)" in " ".join(lines)
    assert set(kstream.life.hdfs.files) == files


def test_hold_leaves_a_running_generation_and_says_when_it_dies(kstream: CommandLine) -> None:
    # However long the claim and this command take.
    kstream.life.clock.ahead += timedelta(minutes=1)
    code, lines = kstream.run("hold")
    assert (code, lines) == (0, [f"orders: held; generation 1 (application_1_0001) is RUNNING{HORIZON}"])
    report = kstream.life.reconcile()
    assert (report.phase, report.job.succeeded, kstream.generations) == (Phase.HELD, True, [True])


def test_hold_after_a_stop_was_begun_says_that_it_is_not_undone(kstream: CommandLine) -> None:
    kstream.life.run.folder.ask_to_stop(1, "a restart was requested")
    kstream.life.clock.ahead += timedelta(minutes=1)
    _, lines = kstream.run("hold")
    assert lines == [
        "orders: held; generation 1 (application_1_0001) is RUNNING; "
        f"its stop was begun before, may still end it, and it then stays dead{HORIZON}"
    ]


def test_hold_after_a_stop_says_that_the_generation_is_dead_and_is_no_success(
    kstream: CommandLine,
) -> None:
    kstream.life.run.folder.ask_to_stop(1, "a restart was requested")
    kstream.life.yarn.end("application_1_0001", ApplicationState.KILLED)
    assert kstream.run("hold") == (0, ["orders: held; generation 1 is dead, stopped before, and stays dead"])
    report = kstream.life.reconcile()
    assert (report.phase, report.job.succeeded, kstream.generations) == (Phase.HELD, False, [False])
    assert "generation 1 is dead, stopped before, and stays dead" in report.why


def test_hold_stands_though_nobody_can_see_what_it_left(kstream: CommandLine) -> None:
    def away(request: str, about: str) -> None:
        raise Unavailable("no ResourceManager is active")

    kstream.life.yarn.at_request = away
    code, lines = kstream.run("hold")
    assert (code, lines) == (0, ["orders: held; how it stands can't be seen now: no ResourceManager is active"])
    assert desired_of(kstream.life).state is DesiredState.HELD


def test_a_word_that_comes_while_a_stop_is_prepared_keeps_the_generation(kstream: CommandLine) -> None:
    kstream.life.request_restart()
    kstream.life.engine.at_preflight = lambda: kstream.run("hold")
    report = kstream.life.reconcile()
    assert (report.phase, kstream.generations) == (Phase.HELD, [True])


def test_a_word_that_comes_while_a_submission_is_prepared_leaves_no_claim(at_first: CommandLine) -> None:
    at_first.life.engine.at_preflight = lambda: at_first.run("stop", NEVER)
    report = at_first.life.begin()
    assert (report.phase, at_first.generations) == (Phase.STOPPED, [])
    assert not any(name.startswith("gen-") for name in at_first.life.run.folder.names())


@pytest.fixture
def copy(tmp_path: Path) -> str:
    """A declaration with another name and the checkpoint of the stream that runs."""
    file = tmp_path / "copy.yaml"
    file.write_text(yaml.safe_dump({**SPEC.to_mapping(), "name": "copy"}))
    return str(file)


def test_take_over_says_what_it_checked_and_whose_the_checkpoint_is_now(kstream: CommandLine, copy: str) -> None:
    code, lines = kstream.run("take-over", copy, name="")
    assert (code, kstream.generations) == (1, [True])
    assert "is written by application_1_0001 of stream orders" in lines[-1]
    kstream.life.yarn.end("application_1_0001")
    code, lines = kstream.run("take-over", copy, "--reason", "orders is gone", "--look-for", "5s", name="")
    assert (code, kstream.generations) == (0, [False])
    assert "watching the checkpoints for 5s" in lines
    assert lines[0].startswith("checked: /data/orders/checkpoint was of stream orders of state_dir /kstream on hdfs:")
    assert "checked: applications of streamer that run and are of no stream: none" in lines
    assert "/data/orders/checkpoint belongs to copy" in lines


def test_a_dry_run_tells_that_the_checkpoint_is_anothers(kstream: CommandLine, copy: str) -> None:
    code, lines = kstream.run("reconcile", copy, "--dry-run", name="")
    assert (code, lines[1]) == (1, "submit: its first generation")
    assert lines[0].startswith("blocked: own the checkpoint of copy: /data/orders/checkpoint belongs to stream orders")


def test_a_dry_run_tells_first_that_the_user_may_not_write_the_checkpoint(
    at_first: CommandLine, tmp_path: Path
) -> None:
    declared = tmp_path / "orders.yaml"
    declared.write_text(yaml.safe_dump(SPEC.to_mapping()))
    at_first.life.hdfs.refused = ("-wx /",)
    code, lines = at_first.run("reconcile", str(declared), "--dry-run", name="")
    assert (code, lines[1]) == (1, "submit: its first generation")
    assert lines[0].startswith("blocked: ")
    assert at_first.generations == []


@pytest.mark.parametrize(
    ("diagnostics", "words", "advice"),
    [
        ("User application exited with status 1", "backing off: it is followed at", "Retrying may help."),
        (
            "Application application_1_0001 was killed by user mallory at 10.0.0.7",
            "nothing starts it until `kstream streams start orders`",
            "Retrying will not help.",
        ),
    ],
)
def test_a_reconcile_that_leaves_a_dead_stream_dead_is_no_success(
    kstream: CommandLine, tmp_path: Path, diagnostics: str, words: str, advice: str
) -> None:
    """The first pauses are short and waited out in place."""
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(SPEC.to_mapping()))
    code, lines = 0, [""]
    for _ in range(10):
        if not code:
            kstream.life.yarn.end(list(kstream.life.yarn.apps)[-1], ApplicationState.FAILED, diagnostics)
            code, lines = kstream.run("reconcile", str(file), name="")
    assert (code, any(kstream.generations)) == (1, False)
    assert words in lines[-1]
    assert lines[-1].endswith(advice)


@pytest.mark.parametrize("wanted", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_reconcile_that_leaves_a_dead_stream_dead_as_a_person_wants_is_a_success(
    kstream: CommandLine, tmp_path: Path, wanted: DesiredState
) -> None:
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(SPEC.to_mapping()))
    stop(kstream.life)
    kstream.life.set_desired(wanted)
    code, lines = kstream.run("reconcile", str(file), name="")
    assert (code, kstream.generations) == (0, [False])
    assert lines[-1].startswith(f"orders is {wanted}: ")


def test_an_adopted_job_is_not_known_to_write_its_checkpoint(at_first: CommandLine, tmp_path: Path) -> None:
    """A person named it, and YARN does not tell which folders a job writes."""
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(SPEC.to_mapping()))
    job = at_first.life.yarn.start(frozenset())
    code, lines = at_first.run("adopt", str(file), "--application-id", job.id, name="")
    assert (code, lines[0]) == (0, f"{job.id} is generation 1 of orders")
    (checkpoint,) = SPEC.checkpoints
    assert lines[1].startswith(f"nothing shows that it writes {checkpoint} until a commit comes")


def test_a_dry_run_of_an_adopt_says_what_it_would_write_and_writes_nothing(
    at_first: CommandLine, tmp_path: Path
) -> None:
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(SPEC.to_mapping()))
    job = at_first.life.yarn.start(frozenset())
    command = ("adopt", str(file), "--application-id", job.id, "--dry-run")
    before = dict(at_first.life.hdfs.files)
    code, lines = at_first.run(*command, name="")
    (checkpoint,) = SPEC.checkpoints
    assert code == 0
    assert lines[0] == f"checked: {job.id} runs as streamer, and is no other stream's"
    assert f"would write: that orders owns {checkpoint}" in lines
    assert any(line.startswith("would write: the claim of generation 1, /kstream/orders-") for line in lines)
    assert at_first.life.hdfs.files == before
    at_first.life.yarn.end(job.id)
    code, lines = at_first.run(*command, name="")
    assert (code, "it ended as" in lines[-1]) == (1, True)


def test_a_dry_run_of_an_adopt_says_that_the_checkpoint_is_anothers(kstream: CommandLine, copy: str) -> None:
    job = kstream.life.yarn.start(frozenset())
    code, lines = kstream.run("adopt", copy, "--application-id", job.id, "--dry-run", name="")
    assert (code, "/data/orders/checkpoint belongs to stream orders" in lines[-1]) == (1, True)


def test_another_users_job_is_adopted_by_an_option_that_names_the_user(at_first: CommandLine, tmp_path: Path) -> None:
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(SPEC.to_mapping()))
    job = at_first.life.yarn.start(frozenset(), user="alice")
    command = ("adopt", str(file), "--application-id", job.id)
    code, lines = at_first.run(*command, name="")
    assert (code, "--of-user alice" in lines[-1]) == (1, True)
    code, lines = at_first.run(*command, "--of-user", "alice", name="")
    assert (code, lines[0]) == (0, f"{job.id} is generation 1 of orders")


def test_a_dry_run_names_the_tokens_whose_end_nobody_counts(kstream: CommandLine, tmp_path: Path) -> None:
    spec = replace(SPEC, conf={"fake.service": "a vault"})
    (file := tmp_path / "orders.yaml").write_text(yaml.safe_dump(spec.to_mapping()))
    code, lines = kstream.run("reconcile", str(file), "--dry-run", name="")
    assert (code, kstream.generations) == (0, [True])
    assert any(line.startswith("its conf names a vault") for line in lines)


def test_two_words_on_one_start_are_refused_before_any_server_is_asked(tmp_path: Path) -> None:
    words = ("start", "orders", "--cluster", str(tmp_path / "no-cluster.yaml"), "--fresh", "--resume", "/saved")
    refused = ran("streams", *words)
    assert (refused.code, "allowed is one of them" in refused.err) == (2, True)


def start_word(kstream: CommandLine) -> StartWord | None:
    return observe(kstream.life.run).desired.start


def test_a_person_says_with_the_order_where_the_next_generation_starts(kstream: CommandLine) -> None:
    code, lines = kstream.run("start", "--fresh")
    assert (code, "runs: stop the stream first" in " ".join(lines)) == (1, True)
    kstream.run("stop")
    assert kstream.run("start", "--fresh", "--allow-non-restored-state")[0] == 0
    assert start_word(kstream) == StartWord(2, fresh=True, drops_unmapped=True)
    kstream.life.hdfs.write("/saved/_metadata", metadata(7))
    assert kstream.run("start", "--resume", "hdfs://simulated/saved")[0] == 0
    assert start_word(kstream) == StartWord(2, "/saved", 7)
    assert kstream.run("start")[0] == 0
    assert start_word(kstream) is None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--resume", "/nowhere"), "/nowhere has no _metadata"),
        (("--resume", "hdfs://elsewhere/saved"), "is not on hdfs://simulated"),
        (("--resume", "/saved", "--fresh"), "allowed is one of them"),
    ],
)
def test_a_start_that_makes_no_sense_is_refused_and_ordered_by_nobody(
    at_first: CommandLine, options: tuple[str, ...], why: str
) -> None:
    code, lines = at_first.run("start", "--never-submitted", *options)
    assert (code, why in " ".join(lines)) == (2, True)
    assert start_word(at_first) is None


def test_the_first_word_on_a_stream_can_be_how_it_starts(at_first: CommandLine) -> None:
    assert at_first.run("start", "--never-submitted", "--fresh")[0] == 0
    assert start_word(at_first) == StartWord(1, fresh=True)


def test_a_spark_stream_takes_no_word_on_its_start(kstream: CommandLine) -> None:
    kstream.run("stop")
    kstream.run("start", "--fresh")
    with pytest.raises(InvalidInput, match="goes on where its checkpoint stands"):
        SparkEngine().resume(kstream.life.run.session, SPEC, observe(kstream.life.run))
    kstream.run("start")
    assert SparkEngine().resume(kstream.life.run.session, SPEC, observe(kstream.life.run)) is None
