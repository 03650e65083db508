"""Two runs of the same principal at once: the journal tells who was first, whether it works, and what it learned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar, cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.leases.journal import Journal, read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from airflow_kstream.supervise.leases.survey import ScanHistory
from tests.simulated.servers import SimClock, SimHdfs

FOLDER, MINUTE = "/kstream/leases.me", timedelta(minutes=1)


@pytest.fixture
def hdfs() -> SimHdfs:
    return SimHdfs(SimClock())


def journal(hdfs: SimHdfs) -> Journal:
    return Journal.begin(cast(Hdfs, hdfs), FOLDER, Identity("me@R", "/k"))


def at_work(hdfs: SimHdfs, path: str) -> Journal:
    run = journal(hdfs)
    run.begun(path)
    hdfs.clock.sleep(0.01)
    return run


def before(run: Journal) -> set[str]:
    return {other.run for other in run.runs_before()}


def test_the_later_of_two_runs_waits_for_the_earlier(hdfs: SimHdfs) -> None:
    first, second = at_work(hdfs, "/data"), at_work(hdfs, "/data/landing")

    assert before(first) == set()
    assert before(second) == {first.run_id}


def test_runs_that_wait_keep_their_order_however_long_the_first_one_works(hdfs: SimHdfs) -> None:
    first, second, third = (at_work(hdfs, "/data") for _ in range(3))
    for _ in range(9):
        hdfs.clock.sleep(10)
        first.asked({"/data/a": "client-1"}, "to learn")
        assert before(second) == {first.run_id}
        assert before(third) == {first.run_id, second.run_id}
    first.close()
    later = at_work(hdfs, "/data")

    assert before(second) == set()
    assert before(third) == {second.run_id}
    assert before(later) == {second.run_id, third.run_id}


def test_a_run_at_other_files_is_not_waited_for(hdfs: SimHdfs) -> None:
    at_work(hdfs, "/data/landing")

    assert before(at_work(hdfs, "/data/landing-2")) == set()


def test_a_run_that_has_ended_is_not_waited_for(hdfs: SimHdfs) -> None:
    first, second = at_work(hdfs, "/data"), at_work(hdfs, "/data")
    first.close()

    assert before(second) == set()


def test_a_killed_run_is_waited_for_half_a_minute(hdfs: SimHdfs) -> None:
    killed, second = at_work(hdfs, "/data"), at_work(hdfs, "/data")
    hdfs.clock.sleep(29)
    assert before(second) == {killed.run_id}
    hdfs.clock.sleep(2)

    assert before(second) == set()


def answered(run: Journal, **liveness: str) -> None:
    """Record a probe of one file of each of these holders, and its answer."""
    run.asked({f"/data/{holder}": holder for holder in liveness}, "to learn")
    run.answered({f"/data/{holder}": f"its holder is {is_}" for holder, is_ in liveness.items()})
    run.flush()


def test_a_lease_that_a_probe_of_a_dead_holder_renewed_is_known_to_other_runs(hdfs: SimHdfs) -> None:
    first, second = at_work(hdfs, "/data/one"), at_work(hdfs, "/data/two")
    answered(first, client_1="dead", client_2="renewing")

    assert second.renewed_by_others(MINUTE).keys() == {"client_1"}
    # It has read its own answers itself.
    assert first.renewed_by_others(MINUTE) == {}
    hdfs.clock.sleep(61)
    assert second.renewed_by_others(MINUTE) == {}


def test_of_two_runs_that_ask_at_once_the_later_one_waits_for_the_others_answer(hdfs: SimHdfs) -> None:
    """Before the answer is written, it may already have renewed the lease."""
    first, second = at_work(hdfs, "/data/one"), at_work(hdfs, "/data/two")
    for run in (first, second):
        run.asked({"/data/a": "client-1"}, "to learn")
        hdfs.clock.sleep(1)

    assert second.renewed_by_others(MINUTE).keys() == {"client-1"}
    assert first.renewed_by_others(MINUTE) == {}
    first.answered({"/data/a": "its holder is renewing"})
    first.flush()
    assert second.renewed_by_others(MINUTE) == {}


def test_a_question_that_is_asked_again_has_no_answer_yet(hdfs: SimHdfs) -> None:
    first, second = at_work(hdfs, "/data/one"), at_work(hdfs, "/data/two")
    answered(first, client_1="renewing")
    hdfs.clock.sleep(62)
    first.asked({"/data/client_1": "client_1"}, "to learn")
    hdfs.clock.sleep(1)
    second.asked({"/data/two": "client_1"}, "to learn")

    assert second.renewed_by_others(MINUTE).keys() == {"client_1"}


def test_an_answer_counts_although_hdfs_s_clock_went_back_meanwhile(hdfs: SimHdfs) -> None:
    """It follows the whole seconds of each answer's Date."""
    run = journal(hdfs)
    for words in ("its holder is dead", "it is closed"):
        run.asked({"/data/a": "client_1"}, "to learn")
        hdfs.clock.sleep(-0.9)
        run.answered({"/data/a": words})
    run.flush()

    records = read_journal(OwnFiles(cast(Hdfs, hdfs)), FOLDER)
    assert [record.why for record in records] == ["its holder is dead", "it is closed"]


class Listed(SimHdfs):
    """It keeps the names that its listings brought."""

    brought: ClassVar[set[str]] = set()

    def matching(
        self, path: str, wanted: Callable[[FileStatus], bool], *, prefix: str = "", after: str = ""
    ) -> tuple[FileStatus, ...]:
        entries = super().matching(path, lambda entry: True, prefix=prefix, after=after)
        self.brought.update(entry.name for entry in entries)
        return tuple(entry for entry in entries if wanted(entry))


def test_of_a_long_history_only_the_runs_of_the_last_days_are_listed() -> None:
    """Those of years may be a hundred thousand files."""
    hdfs = Listed(SimClock())
    earlier = at_work(hdfs, "/data")
    answered(earlier, client_1="dead")
    hdfs.clock.sleep(timedelta(days=9).total_seconds())
    long_run = at_work(hdfs, "/data")
    hdfs.clock.sleep(timedelta(days=6, hours=23).total_seconds())
    long_run.asked({"/data/b": "client-2"}, "to learn")
    second = at_work(hdfs, "/data")
    hdfs.brought.clear()

    assert before(second) == {long_run.run_id}
    assert not any(name.startswith(earlier.run_id) for name in hdfs.brought)
    week = hdfs.now() - timedelta(days=7)
    assert [record.path for record in read_journal(OwnFiles(cast(Hdfs, hdfs)), FOLDER, week)] == ["/data/b"]
    assert len(list(read_journal(OwnFiles(cast(Hdfs, hdfs)), FOLDER))) == 2


class UnderAcl(SimHdfs):
    """The state_dir's default ACL is what its folders get."""

    def make_folder(self, path: str, permission: str = "750") -> None:
        super().make_folder(path, "770")
        self.acls.add(path)


def test_the_folders_of_a_run_get_their_mode_whatever_the_state_dirs_acl() -> None:
    hdfs = UnderAcl(SimClock())
    ScanHistory(cast(Hdfs, hdfs), FOLDER).save([], hdfs.now())
    at_work(hdfs, "/data")
    assert [hdfs.modes[folder] for folder in (FOLDER, f"{FOLDER}/audit")] == ["750", "750"]
    assert not hdfs.acls


def test_folders_that_were_there_keep_the_mode_that_their_user_gave_them(hdfs: SimHdfs) -> None:
    """Somebody may let others read the history; each file counts by its own owner."""
    for folder in (FOLDER, f"{FOLDER}/audit"):
        hdfs.make_folder(folder, "755")
    ScanHistory(cast(Hdfs, hdfs), FOLDER).save([], hdfs.now())
    at_work(hdfs, "/data")
    assert [hdfs.modes[folder] for folder in (FOLDER, f"{FOLDER}/audit")] == ["755", "755"]


def test_that_a_run_began_and_ended_is_no_recovery_in_the_history(hdfs: SimHdfs) -> None:
    at_work(hdfs, "/data").close()

    assert list(read_journal(OwnFiles(cast(Hdfs, hdfs)), FOLDER)) == []
