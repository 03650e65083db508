"""An ordinary user of the cluster who may write where a careless site lets everybody: none of it changes anything.

`mallory` has no right on any stream. The state_dir is open (1777), as many sites make it, so that folders can be made
beside the streams', and files written into those that somebody opened. HDFS and YARN are simulated: which owner a real
NameNode tells of a file is the business of tests/contract.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.clusters.authors import AuthoredFiles, FolderKind, folder_name, order_name
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.contract import (
    accepted_marker,
    claim_file,
    ended_file,
    failed_marker,
    started_marker,
    stop_marker,
    stopped_marker,
)
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import ClaimStart, DesiredState, FailedSpec, StreamId
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import ProxyUserCredentials, StreamSpec
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.streams.folder.formats import (
    ClaimDraft,
    written_claim,
    written_desired,
    written_ends,
    written_freeze,
)
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.registry import registered
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.other_streams import mark_shared_causes
from airflow_kstream.supervise.streams.orders.desired import claimed_spec, declared_at_last, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

DAY = timedelta(days=1)
LIFETIMES = TokenLifetimes(DAY, timedelta(days=7))
STATE_DIR = CLUSTER.state_dir
ORDERS = StreamId("orders", STATE_DIR)
EVIL = replace(
    SPEC,
    application="hdfs:///tmp/evil.py",
    conf={"spark.x": SecretRef("file:/proc/self/environ")},
    deploy=Deploy(files=("/etc/airflow/airflow.cfg",)),
)


class Mallory:
    """The ordinary user, who knows everything that is readable, and says what helps most."""

    def __init__(self, life: Life) -> None:
        self.life, self.hdfs = life, life.hdfs
        self.folder = life.run.id.folder

    def make(self, path: str, mode: str = "755") -> None:
        with self.hdfs.as_user("mallory"):
            self.hdfs.make_folder(path, mode)

    def write(self, path: str, text: str = "") -> None:
        with self.hdfs.as_user("mallory"):
            self.hdfs.write(path, text)

    def claim(self, number: int, spec: StreamSpec, instead_of: FailedSpec | None = None, adopted: str = "") -> None:
        draft = ClaimDraft(number, "mallory", spec, LIFETIMES, {}, "its first generation")
        draft = replace(draft, start=ClaimStart(instead_of), adopted=adopted or None)
        self.write(f"{self.folder}/{claim_file(number)}", written_claim(draft, "airflow@edge1"))

    def accept(self, number: int) -> None:
        self.write(
            f"{self.folder}/{accepted_marker(number)}", json.dumps({"version": 3, "positions": {}, "by": "jane"})
        )


@pytest.fixture
def mallory(life: Life) -> Mallory:
    life.hdfs.modes[STATE_DIR] = "1777"
    return Mallory(life)


@pytest.fixture
def opened(life: Life, mallory: Mallory) -> Mallory:
    """A stream that runs, in a folder that somebody opened to everybody."""
    life.begin()
    life.hdfs.modes[life.run.id.folder] = "777"
    return mallory


def applications(life: Life) -> list[str]:
    return [app.id for app in life.yarn.apps.values() if app.alive]


class TestMallorysFolder:
    """Mallory makes the stream's folder before its first start, or after a person removed it."""

    def test_it_blocks_the_first_start_with_the_superusers_command(self, life: Life, mallory: Mallory) -> None:
        mallory.make(mallory.folder, "777")
        with pytest.raises(Denied, match=f"`hdfs dfs -rm -r {mallory.folder}`"):
            life.begin()
        assert not life.yarn.apps

    def test_what_mallory_claims_there_is_never_submitted(self, life: Life, mallory: Mallory) -> None:
        mallory.make(mallory.folder, "777")
        mallory.claim(1, EVIL)
        mallory.accept(2)
        with pytest.raises(InvalidInput, match=r"no supervisor of /kstream \(hdfs, streamer\) kept a copy"):
            declared_at_last(life.run.session, life.run.id)
        for _ in range(5):
            with pytest.raises(Denied):
                life.reconcile(Mode.ENSURE)
        assert not life.yarn.apps

    def test_mallorys_claim_does_not_choose_as_whom_a_command_acts(self, life: Life, mallory: Mallory) -> None:
        mallory.make(mallory.folder, "777")
        mallory.claim(1, replace(EVIL, credentials=ProxyUserCredentials("hdfs")))
        known = claimed_spec(life.run.session, life.run.id)
        assert not known.submittable, "so it is opened as the connection's own principal"

    def test_a_person_still_stops_holds_and_starts_the_stream(self, life: Life, mallory: Mallory) -> None:
        mallory.make(mallory.folder, "777")
        for state in (DesiredState.STOPPED, DesiredState.HELD, DesiredState.RUNNING):
            life.set_desired(state)
            assert life.run.folder.newest_order(AuthoredFiles(), life.run.session.state.look())

    def test_no_persons_word_makes_the_streams_folder(self, life: Life, mallory: Mallory) -> None:
        life.set_desired(DesiredState.HELD)
        with pytest.raises(NotFound):
            life.hdfs.status(mallory.folder)

    def test_once_the_superuser_removed_it_the_stream_starts(self, life: Life, mallory: Mallory) -> None:
        mallory.make(mallory.folder, "777")
        mallory.claim(7, EVIL)
        with life.hdfs.as_user("hdfs"):
            life.hdfs.delete(mallory.folder, recursive=True)
        report = life.begin()
        assert (report.phase, report.generation) == (Phase.RUNNING, 1)


class TestMallorysFiles:
    """Somebody opened the folder of a stream that runs."""

    def test_a_claim_and_an_acceptance_neither_kill_nor_follow_what_runs(self, life: Life, opened: Mallory) -> None:
        ours = applications(life)
        opened.claim(2, EVIL, FailedSpec(fingerprint(SPEC), 1))
        opened.accept(3)
        for _ in range(5):
            report = life.reconcile(Mode.ENSURE)
            assert (report.phase, report.generation) == (Phase.RUNNING, 1)
        assert applications(life) == ours

    @pytest.mark.parametrize(
        "name",
        [
            claim_file(999_999),
            claim_file(2),
            stop_marker(1),
            stopped_marker(1),
            failed_marker(1),
            ended_file(1),
            "push-000001-1-0",
            "reached-000001",
            "launched-000001",
            "blocked-000001",
            "closing",
            "cleaned-application_1_0001",
        ],
    )
    @pytest.mark.parametrize("text", ["", "rubbish", "{}"])
    def test_no_file_of_mallorys_changes_what_is_seen(self, life: Life, opened: Mallory, name: str, text: str) -> None:
        before = life.watch()
        opened.write(f"{opened.folder}/{name}", text)
        after = life.watch()
        assert (after.why, after.generation, after.step) == (before.why, before.generation, before.step)
        assert life.reconcile(Mode.ENSURE).generation == 1

    def test_mallory_is_named_once_with_what_mallory_wrote(self, life: Life, opened: Mallory) -> None:
        opened.claim(2, EVIL)
        told: list[str] = []
        reconciler = Reconciler(life.run, tell=told.append)
        for _ in range(3):
            reconciler.run(Mode.ENSURE)
        words = f"{opened.folder} holds what strangers wrote, which counts for nothing: gen-000002 of mallory"
        assert [line for line in told if "mallory" in line] == [words]

    def test_the_next_look_closes_the_folder_and_nothing_that_runs_is_touched(
        self, life: Life, opened: Mallory
    ) -> None:
        ours = applications(life)
        opened.claim(2, EVIL)
        told: list[str] = []
        assert Reconciler(life.run, tell=told.append).run(Mode.ENSURE).phase is Phase.RUNNING
        assert told == [
            f"{opened.folder} holds what strangers wrote, which counts for nothing: gen-000002 of mallory",
            f"closed {opened.folder}, without what strangers left there: others could write in it",
        ]
        assert life.hdfs.modes[opened.folder] == "755"
        assert not life.run.folder.authored().strangers
        assert applications(life) == ours

    def test_the_next_generation_closes_the_folder_without_the_strangers_files(
        self, life: Life, opened: Mallory
    ) -> None:
        opened.claim(2, EVIL)
        opened.write(f"{opened.folder}/{stop_marker(2)}")
        life.request_restart()
        report = life.reconcile(Mode.ENSURE)
        assert (report.phase, report.generation) == (Phase.RUNNING, 2)
        assert life.hdfs.modes[opened.folder] == "755"
        assert "mallory" not in {life.hdfs.owners[path] for path in life.hdfs.files if path.startswith(opened.folder)}

    def test_an_acl_counts_as_open(self, life: Life, mallory: Mallory) -> None:
        life.begin()
        life.hdfs.acls.add(mallory.folder)
        life.hdfs.modes[mallory.folder] = "755"
        mallory.hdfs.owners[f"{mallory.folder}/{claim_file(9)}"] = "mallory"
        mallory.hdfs.files[f"{mallory.folder}/{claim_file(9)}"] = ("", life.clock.now())
        assert life.reconcile(Mode.ENSURE).generation == 1

    def test_an_adopted_application_of_another_user_is_not_stopped(self, life: Life, mallory: Mallory) -> None:
        alice = life.yarn.start(frozenset(), user="alice")
        draft = ClaimDraft(1, "own", SPEC, LIFETIMES, {}, "adopted", adopted=alice.id, adopted_started=alice.started)
        # A job that runs as the stream's user wrote it, and no supervisor.
        life.hdfs.make_folder(mallory.folder, "755")
        life.hdfs.write(f"{mallory.folder}/{claim_file(1)}", written_claim(draft, "x"))
        set_desired(life.run, DesiredState.STOPPED, "enough")
        Reconciler(life.run, tell=lambda line: None, may_submit=False).run()
        assert life.yarn.apps[alice.id].alive


class TestMallorysOrders:
    def order(self, mallory: Mallory, subject: str, text: str, folder: str = "mallory") -> None:
        place = f"{STATE_DIR}/{folder_name(FolderKind.ORDERS, folder)}"
        mallory.make(place)
        mallory.write(f"{place}/{order_name(subject, 999_999)}", text)

    def test_mallorys_freeze_freezes_nobody(self, life: Life, mallory: Mallory) -> None:
        forever = datetime(9999, 12, 31, tzinfo=UTC)
        self.order(mallory, "freeze", written_freeze(forever, "jane@edge1", "planned maintenance", "x"))
        assert FreezeStore(life.run.session).newest().number == 0
        assert life.begin().phase is Phase.RUNNING

    def test_mallory_may_not_freeze_by_command_either(self, life: Life, mallory: Mallory) -> None:
        with (
            life.hdfs.as_user("mallory"),
            pytest.raises(Denied, match=r"name mallory in a line of /kstream/supervisors"),
        ):
            FreezeStore(replace(life.run.session)).freeze(DAY, "for fun")
        assert FreezeStore(life.run.session).newest().number == 0

    def test_mallorys_order_stops_nothing(self, life: Life, mallory: Mallory) -> None:
        life.begin()
        stop = replace(life.run.folder.desired(None), state=DesiredState.STOPPED, reason="enough")
        self.order(mallory, str(ORDERS), written_desired(stop, "jane@edge1", "x"))
        assert life.reconcile(Mode.ENSURE).phase is Phase.RUNNING

    def test_the_name_of_a_supervisors_folder_gives_mallory_nothing(self, life: Life, mallory: Mallory) -> None:
        life.begin()
        stop = replace(life.run.folder.desired(None), state=DesiredState.STOPPED, reason="enough")
        self.order(mallory, str(ORDERS), written_desired(stop, "jane@edge1", "x"), folder="streamer")
        assert life.reconcile(Mode.ENSURE).phase is Phase.RUNNING
        life.set_desired(DesiredState.HELD)
        assert life.reconcile(Mode.ENSURE).phase is Phase.HELD, "the supervisor's word lies in the next folder"

    def test_mallorys_file_of_supervisors_names_nobody(self, life: Life, mallory: Mallory) -> None:
        mallory.write(f"{STATE_DIR}/supervisors", "mallory\n")
        assert "mallory" not in life.run.session.state.look().supervisors


class TestMallorysCopies:
    @pytest.mark.parametrize("folder", ["mallory", "streamer"])
    def test_what_mallory_declares_is_submitted_by_nobody(self, life: Life, opened: Mallory, folder: str) -> None:
        place = f"{STATE_DIR}/{folder_name(FolderKind.DECLARED, folder)}.2/{ORDERS}"
        opened.make(place.rpartition("/")[0])
        opened.make(place)
        opened.write(f"{place}/{copy_name(fingerprint(EVIL), 'mallory')}", written_copy(EVIL, "mallory"))
        opened.claim(2, EVIL)
        assert declared_at_last(life.run.session, life.run.id).spec.application == SPEC.application
        for author in ("mallory", "streamer"):
            assert life.run.session.copies.of(life.run.id, fingerprint(EVIL), author) is None

    def test_mallorys_copy_does_not_make_mallory_the_streams_user(self, life: Life, opened: Mallory) -> None:
        place = f"{STATE_DIR}/{folder_name(FolderKind.DECLARED, 'mallory')}/{ORDERS}"
        opened.make(place)
        opened.write(f"{place}/{copy_name(fingerprint(SPEC), 'mallory')}", written_copy(SPEC, "mallory"))
        opened.claim(2, EVIL)
        assert StreamFolder(life.run.session, life.run.id).authored().strangers == {claim_file(2): "mallory"}


def test_mallorys_records_of_ends_open_and_close_no_breaker(life: Life, mallory: Mallory) -> None:
    now = life.clock.now()
    why = "java.lang.IllegalStateException: no such column"
    mine = PastEnd(3, EndKind.CODE, why, now, now, timedelta(minutes=1), worked=False)
    for name in ("m1", "m2", "m3"):
        folder = StreamId(name, STATE_DIR).folder
        mallory.make(folder)
        mallory.write(f"{folder}/{ended_file(1)}", written_ends([replace(mine, generation=1)], "x", "y"))
    ends = mark_shared_causes(life.run.session, life.run.id, SPEC.failure, (mine,))
    assert not ends[-1].shared
    assert ends[-1].costs


def test_a_file_of_gigabytes_ends_no_look(life: Life, mallory: Mallory) -> None:
    stream = StreamId("aaa", STATE_DIR)
    mallory.make(stream.folder)
    mallory.write(f"{stream.folder}/{claim_file(1)}", " " * (2 << 20))
    found = registered(life.run.session, stream)
    assert isinstance(found.newest, InvalidInput)
    assert "longer than" in found.newest.message


def test_a_driver_that_was_told_to_stop_by_mallory_runs_on(life: Life, opened: Mallory) -> None:
    ours = applications(life)
    opened.write(f"{opened.folder}/{started_marker(1)}")
    opened.write(f"{opened.folder}/{stop_marker(1)}")
    assert life.reconcile(Mode.ENSURE).phase is Phase.RUNNING
    assert applications(life) == ours
