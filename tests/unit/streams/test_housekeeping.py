"""Housekeeping of a state_dir: drafts and history go as the dry run printed, and no folder ever does."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.cli import main
from airflow_kstream.clients.local.regular_files import declaration_files, declared_names
from airflow_kstream.model.errors import Conflict, Denied, NotFound, Unavailable
from airflow_kstream.model.streams.event import Ledger, ToldSubject
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.housekeeping import CleaningReport, Housekeeper
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.folders import order_path
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, SimHdfs, session_of
from tests.temporary import without_roots_rights
from tests.unit.streams.orders.conftest import cluster_file

MONTH, DAY = timedelta(days=30), timedelta(days=1)
ID = StreamId(SPEC.name, CLUSTER.state_dir)
OURS = ID.folder
DRAFT = f"{OURS}/.claim-0123456789ab"
ORDER = order_path(ID)


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
    return Housekeeper(life.run.session, frozenset(declared or {"sales"}), MONTH)


def clean(life: Life, *declared: str) -> CleaningReport:
    return housekeeper(life, *declared).clean(lambda line: None)


def removed_by_hand(hdfs: Hdfs, words: str) -> list[str]:
    """Run the command that a person is shown, as a shell and HDFS do; return its paths."""
    command = shlex.split(words.split("`")[1])
    assert command[:4] == ["hdfs", "dfs", "-rm", "-r"]
    hdfs.watched = False
    for path in command[4:]:
        hdfs.delete(path, recursive=True)
    return command[4:]


def elsewhere(hdfs: Hdfs) -> tuple[str, ...]:
    """Return what the housekeeper itself keeps of the stream: notes, copies of its declarations, orders."""
    copies = f"{CLUSTER.state_dir}/declared.streamer/{ID}"
    orders = f"{CLUSTER.state_dir}/orders.streamer"
    given = [f"{orders}/{file.name}" for file in hdfs.list(orders) if file.name.startswith(f"{ID}.")]
    notes = [path for path in hdfs.files if path.startswith(f"{CLUSTER.state_dir}/told.streamer/{SPEC.name}-")]
    return (*notes, *([copies] if hdfs.list(copies) else []), *given)


def test_a_stream_that_is_gone_is_shown_with_the_command_that_removes_it(life: Life, hdfs: Hdfs) -> None:
    before = dict(hdfs.files)
    report = clean(life)
    assert (hdfs.files, report.removals, report.stays) == (before, (), {})
    assert report == replace(housekeeper(life).plan(), dry_run=False)
    words = report.gone[SPEC.name]
    assert words.startswith("nobody declares it, and a person stopped it; as long as that is so, `hdfs dfs -rm -r ")
    kept = elsewhere(hdfs)
    assert removed_by_hand(hdfs, words) == [OURS, *kept]
    assert not hdfs.list_of(OURS)
    assert not elsewhere(hdfs)
    assert {path for path in hdfs.files if path.startswith("/data/")} == {path for path in before if "/data/" in path}
    assert clean(life).gone == {}


def test_drafts_and_history_go_as_the_dry_run_showed_them(life: Life, hdfs: Hdfs) -> None:
    hdfs.files[DRAFT] = ("half", life.clock.now() - 31 * DAY)
    before = dict(hdfs.files)
    shown = housekeeper(life).plan()
    assert (hdfs.files, [removal.path for removal in shown.removals]) == (before, [DRAFT])
    done = clean(life)
    assert (done.removals, done.removed) == (shown.removals, (DRAFT,))
    assert before.keys() - hdfs.files.keys() == {DRAFT}


def test_notes_of_what_was_told_go_with_their_stream_and_no_others(life: Life, hdfs: Hdfs) -> None:
    told = life.run.session.told
    others = [ToldSubject("", "prod", "sales"), ToldSubject("", "prod", f"{SPEC.name}-eu"), ToldSubject("", "prod", "")]
    ours = [ToldSubject("", "prod", SPEC.name), ToldSubject("staging", "prod", SPEC.name)]
    for subject in (*ours, *others):
        told.note(subject, Ledger(changes=1))
    removed_by_hand(hdfs, clean(life).gone[SPEC.name])
    left = {path.rpartition("/")[2] for path in hdfs.files if "/told.streamer/" in path}
    assert left == {subject.file_name for subject in others}


@pytest.mark.parametrize("name", ["told.streamer/.orders-0a.0123", "declared.streamer/.policies.prod-0a.0123"])
def test_what_its_writer_never_finished_goes(life: Life, hdfs: Hdfs, name: str) -> None:
    draft = f"{CLUSTER.state_dir}/{name}"
    hdfs.make_folder(draft.rpartition("/")[0], "755")
    hdfs.write(draft, "{")
    assert draft not in clean(life).removed
    life.clock.ahead += 31 * DAY
    assert draft in clean(life).removed


def test_a_stream_that_comes_back_is_refused_its_data_and_nothing_is_submitted(life: Life, hdfs: Hdfs) -> None:
    removed_by_hand(hdfs, clean(life).gone[SPEC.name])
    with pytest.raises(Conflict, match="take-over"):
        life.reconcile(Mode.ENSURE)
    assert len(life.yarn.apps) == 1


@pytest.mark.parametrize("declared", [SPEC.name, f"{SPEC.name} sales"])
def test_a_declared_stream_stays(life: Life, hdfs: Hdfs, declared: str) -> None:
    report = clean(life, *declared.split())
    assert (report.removals, report.gone) == ((), {})


def test_nothing_is_gone_where_the_declarations_are_not_known(life: Life, hdfs: Hdfs) -> None:
    hdfs.write(DRAFT, "half")
    hdfs.files[DRAFT] = ("half", life.clock.now() - 31 * DAY)
    report = Housekeeper(life.run.session, None, MONTH).clean(lambda line: None)
    assert (report.removed, report.gone) == ((DRAFT,), {})


def test_what_lives_in_yarn_keeps_the_folder(life: Life, hdfs: Hdfs) -> None:
    app = life.yarn.start(frozenset(StreamId(SPEC.name, CLUSTER.state_dir).tags(1)))
    report = clean(life)
    assert (report.removals, report.gone) == ((), {})
    assert report.stays == {SPEC.name: f"{app.id} runs"}


def test_an_application_of_a_stranger_with_its_tags_keeps_no_folder(life: Life, hdfs: Hdfs) -> None:
    life.yarn.start(frozenset(StreamId(SPEC.name, CLUSTER.state_dir).tags(1)), user="mallory")
    assert SPEC.name in clean(life).gone


def test_while_the_resourcemanager_is_away_nothing_is_gone(life: Life, hdfs: Hdfs) -> None:
    def away(request: str, about: str) -> None:
        raise Unavailable("connection refused", tried="list applications")

    life.yarn.at_request = away
    report = clean(life)
    assert (report.removals, report.gone) == ((), {})
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
    assert (report.removals, report.gone) == ((), {})
    assert report.stays[SPEC.name].startswith(f"it owns {SPEC.checkpoints[0]}")


@pytest.mark.parametrize("path", [f"{OURS}/gen-000001", ORDER])
def test_what_can_not_be_read_stays(life: Life, hdfs: Hdfs, path: str) -> None:
    hdfs.files[path] = ("{", hdfs.files[path][1])
    life.use(hdfs)
    report = clean(life)
    assert (report.removals, report.gone) == ((), {})
    assert "can't be understood" in report.stays[SPEC.name]


def test_a_frozen_cluster_is_shown_and_not_touched(life: Life, hdfs: Hdfs) -> None:
    hdfs.files[DRAFT] = ("half", life.clock.now() - 31 * DAY)
    FreezeStore(life.run.session, "ann").freeze(DAY, "a new NameNode")
    assert len(housekeeper(life).plan().removals) == 1
    with pytest.raises(Conflict, match=r"by ann \(HDFS user streamer\): a new NameNode"):
        clean(life)
    assert hdfs.deleted == []


def test_a_freeze_that_begins_meanwhile_ends_it_before_the_next_folder(life: Life, hdfs: Hdfs) -> None:
    draft = f"{CLUSTER.state_dir}/.check-0123456789ab"
    hdfs.files |= {path: ("x", life.clock.now() - 31 * DAY) for path in (draft, DRAFT)}
    hdfs.before = lambda: FreezeStore(life.run.session, "ann").freeze(DAY, "now")
    with pytest.raises(Conflict):
        clean(life)
    assert hdfs.deleted == [draft]


def test_old_records_of_our_own_lease_recoveries_go_and_nobody_elses(life: Life, hdfs: Hdfs) -> None:
    hdfs.watched = False
    written = {"ann": "leases.ann", "streamer": "leases.streamer", "mallory": "leases.streamer"}
    records = {user: f"{CLUSTER.state_dir}/{folder}/audit/of-{user}.jsonl" for user, folder in written.items()}
    for user, path in records.items():
        with hdfs.as_user(user):
            hdfs.make_folder(f"{CLUSTER.state_dir}/leases.{user}")
            hdfs.write(path, "")
    hdfs.watched = True
    assert not {*records.values()} & {*clean(life, SPEC.name).removed}
    life.clock.ahead += 91 * DAY
    shown = {removal.path for removal in housekeeper(life, SPEC.name).plan().removals}
    assert shown & {*records.values()} == {records["streamer"]}
    clean(life, SPEC.name)
    assert {user for user, path in records.items() if path in hdfs.files} == {"ann", "mallory"}


def test_a_strangers_later_orders_make_none_of_ours_old(life: Life, hdfs: Hdfs) -> None:
    """In a folder that somebody has opened: the order that keeps a stream stopped would go."""
    with hdfs.as_user("mallory"):
        hdfs.modes[f"{CLUSTER.state_dir}/orders.streamer"] = "777"
        for number in range(100, 120):
            hdfs.write(ORDER.replace("000001", f"{number:06d}"), "")
    life.clock.ahead += 31 * DAY
    clean(life, SPEC.name)
    assert ORDER in hdfs.files


def test_another_persons_order_on_a_gone_stream_is_that_persons_to_remove(life: Life, hdfs: Hdfs) -> None:
    with hdfs.as_user("hdfs"):
        set_desired(replace(life.run, session=session_of(hdfs, life.yarn)), DesiredState.STOPPED, "enough")
    hdfs.files = {path: (text, life.clock.now() - 31 * DAY) for path, (text, _) in hdfs.files.items()}
    assert "orders.hdfs" not in clean(life).gone[SPEC.name]


def test_a_folder_of_another_principal_is_reported_and_the_others_go(life: Life, hdfs: Hdfs) -> None:
    draft = f"{CLUSTER.state_dir}/.check-0123456789ab"
    hdfs.files |= {path: ("x", life.clock.now() - 31 * DAY) for path in (draft, DRAFT)}
    hdfs.denied = OURS
    report = clean(life)
    assert report.removed == (draft,)
    [(path, why)] = report.failed.items()
    assert path == DRAFT
    assert "Permission denied" in why


def test_a_running_stream_loses_old_drafts_alone(life: Life) -> None:
    hdfs = Hdfs(life.clock)
    life.use(hdfs)
    life.begin()
    hdfs.files[DRAFT] = ("half", life.clock.now())
    life.clock.ahead += 31 * DAY
    assert clean(life, SPEC.name).removed == (DRAFT,)
    undeclared = clean(life)
    assert (undeclared.removals, undeclared.gone) == ((), {})
    assert undeclared.stays[SPEC.name].startswith("its desired state is running")


def test_other_installations_and_foreign_folders_are_not_looked_at(life: Life, hdfs: Hdfs) -> None:
    other = str(StreamId("payments", "/elsewhere"))
    for path in (f"{other}/gen-000001", "leases-ops/history", "notes/todo"):
        hdfs.files[f"{CLUSTER.state_dir}/{path}"] = ("", life.clock.now() - 400 * DAY)
    report = housekeeper(life).plan()
    assert (report.removals, set(report.gone)) == ((), {SPEC.name})


def test_a_state_dir_that_is_not_there_is_an_error(life: Life) -> None:
    life.hdfs.delete(CLUSTER.state_dir)
    with pytest.raises(NotFound):
        housekeeper(life).plan()


def test_a_stream_that_is_gone_costs_a_running_one_nothing(life: Life, hdfs: Hdfs) -> None:
    other = replace(SPEC, name="sales", checkpoints=("/data/sales",))
    run = StreamRun(life.run.session, other, life.engine)
    Reconciler(run, tell=lambda line: None).run(Mode.ENSURE)
    assert set(clean(life, "clicks").gone) == {SPEC.name}


def test_a_folder_of_declarations_without_a_file_proves_nothing(tmp_path: Path) -> None:
    assert declared_names(None) is None
    assert declared_names(tmp_path) is None
    assert declared_names(tmp_path / "gone") is None
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text("name: orders\ncredenti")
    assert declared_names(tmp_path) == frozenset({"orders"})


def test_a_folder_of_declarations_of_which_a_part_cannot_be_read_proves_nothing(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    for path in (tmp_path / "orders.yaml", closed / "sales.yaml"):
        path.touch()
    tmp_path.chmod(0o755)
    closed.chmod(0)
    # Nobody may enter the folders above: this one is reached as the current one.
    with contextlib.chdir(tmp_path), without_roots_rights():
        assert declared_names(Path()) is None
        with pytest.raises(PermissionError):
            declaration_files(Path())


@pytest.mark.parametrize("name", ["lost+found", ".Trash-0"])
def test_a_folder_that_is_nobodys_declarations_may_be_closed(tmp_path: Path, name: str) -> None:
    """A filesystem keeps its own in the folder where it is mounted, for root alone."""
    (tmp_path / "orders.yaml").touch()
    (tmp_path / name).mkdir()
    tmp_path.chmod(0o755)
    (tmp_path / name).chmod(0)
    with contextlib.chdir(tmp_path), without_roots_rights():
        assert declared_names(Path()) == frozenset({"orders"})
        assert declaration_files(Path()) == [Path("orders.yaml")]


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
    hdfs.files[DRAFT] = ("half", life.clock.now() - 31 * DAY)
    would = f"would remove {DRAFT} (draft: its writer never finished it)\n"
    assert kstream() == (0, f"{would}1 files would go; nothing was removed\n")
    folder = ("--declarations", str(tmp_path / "declared"))
    code, printed = kstream(*folder)
    assert code == 0
    assert would in printed
    assert f"{SPEC.name} is gone: nobody declares it, and a person stopped it; as long as" in printed
    assert f"`hdfs dfs -rm -r {OURS} " in printed
    assert hdfs.deleted == []
    code, printed = kstream(*folder, "--yes")
    assert code == 0
    assert f"removed {DRAFT} (draft: " in printed
    assert hdfs.deleted == [DRAFT]
    code, printed = kstream(*folder, "--older-than", "2h")
    assert (code, printed.strip()) == (2, "kstream: --older-than is 2h; allowed is 1d to 3660d")


def test_the_command_fails_when_something_could_not_be_removed(
    life: Life, hdfs: Hdfs, kstream: Callable[..., tuple[int, str]]
) -> None:
    hdfs.files[DRAFT] = ("half", life.clock.now() - 31 * DAY)
    hdfs.denied = OURS
    code, printed = kstream("--yes")
    assert code == 1
    assert "could not remove" in printed
    assert "Permission denied" in printed
