"""Housekeeping of a state_dir: exactly what the dry run printed goes, and nothing that somebody needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.cli import main
from airflow_kstream.clients.local.declared_names import declared_names
from airflow_kstream.model.contract import desired_file
from airflow_kstream.model.errors import Conflict, Denied, NotFound, Unavailable
from airflow_kstream.model.generation import ALL_STREAMS_TAG, DesiredState, StreamId
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.brake import Brake
from airflow_kstream.supervise.streams.desired import set_desired
from airflow_kstream.supervise.streams.housekeeping import CleaningReport, Housekeeper
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, SimHdfs
from tests.unit.streams.test_stream_commands import cluster_file

MONTH, DAY = timedelta(days=30), timedelta(days=1)
OURS = StreamId(SPEC.name, CLUSTER.state_dir).folder
DRAFT = f"{OURS}/.claim-0123456789ab"


@dataclass
class Hdfs(SimHdfs):
    """It refuses to delete some names, and lets something happen before the first request to delete."""

    denied: str = "no such name"
    away: str = "no such name"
    before: Callable[[], object] | None = None
    deleted: list[str] = field(default_factory=list)
    watched: bool = False

    def list_of(self, folder: str) -> list[str]:
        return [path for path in self.files if path.startswith(f"{folder}/")]

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        if not self.watched:
            return super().delete(path, recursive=recursive)
        assert not recursive, "what nobody looked at would go, too"
        if self.denied in path:
            raise Denied("Permission denied: user=streamer", tried=f"delete {path}")
        if self.away in path:
            raise Unavailable("connection refused", tried=f"delete {path}")
        happens, self.before = self.before, None
        if happens:
            happens()
        self.deleted.append(path)
        return super().delete(path, recursive=recursive)


@pytest.fixture
def hdfs(life: Life) -> Hdfs:
    """A stream that was stopped by a person and is old."""
    hdfs = Hdfs(life.clock)
    life.use(hdfs)
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.set_desired(DesiredState.STOPPED)
    life.reconcile()
    hdfs.watched = True
    life.clock.ahead += 31 * DAY
    return hdfs


def housekeeper(life: Life, *declared: str) -> Housekeeper:
    return Housekeeper(life.run.session, lambda: frozenset(declared or {"sales"}), MONTH)


def clean(life: Life, *declared: str) -> CleaningReport:
    return housekeeper(life, *declared).clean(lambda line: None)


def checkpoint(hdfs: Hdfs) -> dict[str, object]:
    return {path: file for path, file in hdfs.files.items() if path.startswith("/data/")}


def test_a_dry_run_changes_nothing_and_the_real_run_removes_exactly_what_it_showed(life: Life, hdfs: Hdfs) -> None:
    before, points = dict(hdfs.files), checkpoint(hdfs)
    shown = housekeeper(life).plan()
    assert (hdfs.files, hdfs.deleted) == (before, [])
    assert {removal.path for removal in shown.removals} == {*hdfs.list_of(OURS), OURS}
    done = clean(life)
    assert done.removals == shown.removals
    assert [*done.removed] == [removal.path for removal in shown.removals]
    assert hdfs.names(CLUSTER.state_dir) == frozenset()
    assert checkpoint(hdfs) == points, "the owner of the data is still known"
    assert life.run.session.hdfs.list(OURS) == ()


def test_a_stream_that_comes_back_is_refused_its_data_and_nothing_is_submitted(life: Life, hdfs: Hdfs) -> None:
    clean(life)
    with pytest.raises(Conflict, match="take-over"):
        life.reconcile(Mode.ENSURE)
    assert len(life.yarn.apps) == 1


@pytest.mark.parametrize("declared", [SPEC.name, f"{SPEC.name} sales"])
def test_a_declared_stream_stays(life: Life, hdfs: Hdfs, declared: str) -> None:
    assert clean(life, *declared.split()).removals == ()


def test_nothing_is_gone_where_the_declarations_are_not_known(life: Life, hdfs: Hdfs) -> None:
    hdfs.write(DRAFT, "half")
    hdfs.files[DRAFT] = ("half", life.clock.now() - 31 * DAY)
    report = Housekeeper(life.run.session, lambda: None, MONTH).clean(lambda line: None)
    assert report.removed == (DRAFT,)


@pytest.mark.parametrize("where", ["its own tag", "a stranger's"])
def test_what_lives_in_yarn_keeps_the_folder(life: Life, hdfs: Hdfs, where: str) -> None:
    tags = frozenset(StreamId(SPEC.name, CLUSTER.state_dir).tags(1)) | {ALL_STREAMS_TAG}
    app = life.yarn.start(tags, user="mallory" if where == "a stranger's" else "")
    report = clean(life)
    assert report.removals == ()
    assert report.stays == {SPEC.name: f"{app.id} runs"}


def test_a_resourcemanager_that_is_away_removes_nothing(life: Life, hdfs: Hdfs) -> None:
    def away(request: str, about: str) -> None:
        raise Unavailable("connection refused", tried="list applications")

    life.yarn.at_request = away
    report = clean(life)
    assert report.removals == ()
    assert "connection refused" in report.stays[SPEC.name]


def test_a_stream_that_owns_its_checkpoint_keeps_its_folder(life: Life) -> None:
    """It was stopped while nobody watched, so nothing was released."""
    hdfs = Hdfs(life.clock)
    life.use(hdfs)
    life.begin()
    for app in list(life.yarn.apps):
        life.yarn.end(app)
    set_desired(life.run, DesiredState.STOPPED, "")
    life.clock.ahead += 31 * DAY
    report = clean(life)
    assert report.removals == ()
    assert report.stays[SPEC.name].startswith(f"it owns {SPEC.checkpoints[0]}")


@pytest.mark.parametrize("name", ["gen-000001", "desired-000001.json"])
def test_what_can_not_be_read_stays(life: Life, hdfs: Hdfs, name: str) -> None:
    hdfs.files[f"{OURS}/{name}"] = ("{", hdfs.files[f"{OURS}/{name}"][1])
    report = clean(life)
    assert report.removals == ()
    assert "can't be understood" in report.stays[SPEC.name]


def test_a_frozen_cluster_is_shown_and_not_touched(life: Life, hdfs: Hdfs) -> None:
    Brake(life.run.session.hdfs, CLUSTER.state_dir, "ann").freeze(DAY, "a new NameNode")
    assert len(housekeeper(life).plan().removals) > 1
    with pytest.raises(Conflict, match="by ann: a new NameNode"):
        clean(life)
    assert hdfs.deleted == []


def test_a_freeze_that_begins_meanwhile_ends_it_before_the_next_folder(life: Life, hdfs: Hdfs) -> None:
    draft = f"{CLUSTER.state_dir}/.check-0123456789ab"
    hdfs.files[draft] = ("x", life.clock.now() - 31 * DAY)
    hdfs.before = lambda: Brake(life.run.session.hdfs, CLUSTER.state_dir, "ann").freeze(DAY, "now")
    with pytest.raises(Conflict):
        clean(life)
    assert hdfs.deleted == [draft]


def test_a_stream_that_is_declared_meanwhile_stays(life: Life, hdfs: Hdfs) -> None:
    looks = iter([frozenset({"sales"}), frozenset({SPEC.name})])
    report = Housekeeper(life.run.session, lambda: next(looks), MONTH).clean(lambda line: None)
    assert report.removed == ()
    assert set(report.changed) == {removal.path for removal in report.removals}


def test_a_claim_that_is_made_meanwhile_is_never_deleted(life: Life, hdfs: Hdfs) -> None:
    hdfs.before = lambda: hdfs.write(f"{OURS}/gen-000002", "of somebody who was quicker")
    report = clean(life)
    assert f"{OURS}/gen-000002" in hdfs.files
    assert list(report.failed) == [OURS]


def test_what_an_interrupted_run_leaves_starts_nothing_and_goes_with_the_next(life: Life, hdfs: Hdfs) -> None:
    hdfs.away = desired_file(1)
    with pytest.raises(Unavailable):
        clean(life)
    assert list(hdfs.list_of(OURS)) == [f"{OURS}/{desired_file(1)}"]
    assert life.run.folder.desired(life.run.folder.names()).state is DesiredState.STOPPED
    hdfs.away = "no such name"
    assert clean(life).removed == (f"{OURS}/{desired_file(1)}", OURS)


def test_a_folder_of_another_principal_is_reported_and_the_others_go(life: Life, hdfs: Hdfs) -> None:
    draft = f"{CLUSTER.state_dir}/.check-0123456789ab"
    hdfs.files[draft] = ("x", life.clock.now() - 31 * DAY)
    hdfs.denied = OURS
    report = clean(life)
    assert report.removed == (draft,)
    [(path, why)] = report.failed.items()
    assert path.startswith(OURS)
    assert "Permission denied" in why


def test_a_running_stream_loses_old_drafts_alone(life: Life) -> None:
    hdfs = Hdfs(life.clock)
    life.use(hdfs)
    life.begin()
    hdfs.files[DRAFT] = ("half", life.clock.now())
    life.clock.ahead += 31 * DAY
    assert clean(life, SPEC.name).removed == (DRAFT,)
    undeclared = clean(life)
    assert undeclared.removals == ()
    assert undeclared.stays[SPEC.name].startswith("its desired state is running")


def test_other_installations_and_foreign_folders_are_not_looked_at(life: Life, hdfs: Hdfs) -> None:
    other = str(StreamId("payments", "/elsewhere"))
    for path in (f"{other}/gen-000001", "leases-ops/history", "notes/todo"):
        hdfs.files[f"{CLUSTER.state_dir}/{path}"] = ("", life.clock.now() - 400 * DAY)
    assert all(removal.path.startswith(OURS) for removal in housekeeper(life).plan().removals)


def test_a_state_dir_that_is_not_there_is_an_error(life: Life) -> None:
    with pytest.raises(NotFound):
        housekeeper(life).plan()


def test_a_second_stream_that_is_gone_costs_the_first_nothing(life: Life, hdfs: Hdfs) -> None:
    other = replace(SPEC, name="sales", checkpoints=("/data/sales",))
    run = StreamRun(life.run.session, other, life.engine)
    Reconciler(run, tell=lambda line: None).run(Mode.ENSURE)
    assert {removal.path.rpartition("/")[0] for removal in clean(life, "clicks").removals} == {OURS, CLUSTER.state_dir}


def test_a_folder_of_declarations_without_a_file_proves_nothing(tmp_path: Path) -> None:
    assert declared_names(None) is None
    assert declared_names(tmp_path) is None
    assert declared_names(tmp_path / "gone") is None
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text("name: orders\ncredenti")
    assert declared_names(tmp_path) == frozenset({"orders"})


@pytest.fixture
def kstream(
    hdfs: Hdfs, served: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """`kstream state clean` in this process."""
    (tmp_path / "declared").mkdir()
    (tmp_path / "declared" / "sales.yaml").write_text("")
    file = cluster_file(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def run(*options: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["state", "clean", "--cluster", str(file), *options])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out + printed.err

    return run


def test_the_command_prints_what_would_go_and_removes_it_only_with_yes(
    life: Life, hdfs: Hdfs, tmp_path: Path, kstream: Callable[..., tuple[int, str]]
) -> None:
    folder = ("--declarations", str(tmp_path / "declared"))
    assert kstream() == (0, "0 files and folders would go; nothing was removed\n")
    code, printed = kstream(*folder)
    assert code == 0
    assert f"would remove {OURS} (folder: nobody declares the stream, and it is stopped)" in printed
    assert hdfs.deleted == []
    code, printed = kstream(*folder, "--yes")
    assert code == 0
    assert f"removed {OURS}/gen-000001 (folder: " in printed
    assert hdfs.names(CLUSTER.state_dir) == frozenset()
    code, printed = kstream(*folder, "--older-than", "2h")
    assert (code, printed.strip()) == (2, "kstream: --older-than is 2h; allowed is 1d to 3660d")


def test_the_command_fails_when_something_could_not_be_removed(
    hdfs: Hdfs, tmp_path: Path, kstream: Callable[..., tuple[int, str]]
) -> None:
    hdfs.denied = OURS
    code, printed = kstream("--declarations", str(tmp_path / "declared"), "--yes")
    assert code == 1
    assert "could not remove" in printed
    assert "Permission denied" in printed
