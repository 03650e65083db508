"""A stranger can't make a recovery take a living writer's lease, wait for ever, or forget what it saw."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.authors import FolderKind
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.leases.lease import Attribution
from airflow_kstream.model.leases.open_file import FileHistory, FileState, OpenFile
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.clusters.state_dir import own_folder, passed_over
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.journal import Journal, read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from airflow_kstream.supervise.leases.survey import ScanHistory
from airflow_kstream.supervise.leases.visible_length import ValidLengths, companion_of
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim
from tests.simulated.lease_holders import ME, SimLeases, SimRecovery
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import TICKET_SPEC

STATE, OURS = "/kstream", "/kstream/leases.streamer"
WRITER, FILE = "DFSClient_NONMAPREDUCE_1_30", "/data/part-00007.avro.tmp"
MINUTE = timedelta(minutes=1)
DAY = TokenLifetimes(timedelta(days=1), timedelta(days=7))
# A run of our user today, by its name.
RUN = f"{datetime.now(UTC):%Y%m%d}T000000Z-abcdef01"


@pytest.fixture
def hdfs() -> SimHdfs:
    """Somebody has opened our folder to everybody, so that only the owners of files tell whose they are."""
    hdfs = anyones()
    for folder in (OURS, f"{OURS}/audit"):
        hdfs.make_folder(folder, "777")
    return hdfs


def anyones() -> SimHdfs:
    """Return an HDFS with a state_dir in which everybody may make folders."""
    hdfs = SimHdfs(SimClock())
    hdfs.modes[STATE] = "1777"
    hdfs.write(f"{STATE}/.keep", "")
    return hdfs


def put(hdfs: SimHdfs, user: str, path: str, text: str = "") -> None:
    with hdfs.as_user(user):
        hdfs.write(path, text, overwrite=True)


def folder(hdfs: SimHdfs) -> str:
    return own_folder(cast(Hdfs, hdfs), STATE, FolderKind.LEASES)


def journal(hdfs: SimHdfs, told: list[str] | None = None, place: str = OURS) -> Journal:
    return Journal.begin(cast(Hdfs, hdfs), place, ME, (told if told is not None else []).append)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def call_dead(hdfs: SimHdfs, user: str, holder: str = WRITER, place: str = OURS) -> None:
    """Write the two lines that say that a run of ours asked for this holder and found it dead."""
    line = {"run": RUN, "at": hdfs.now().isoformat(), "path": FILE, "who": "root@edge1", "principal": str(ME)}
    put(hdfs, user, f"{place}/audit/{RUN}-000000-intents.jsonl", lines(line | {"action": "ask", "holder": holder}))
    put(
        hdfs,
        user,
        f"{place}/audit/{RUN}-000001-results.jsonl",
        lines(line | {"action": "ask", "asked": line["at"], "why": "its holder is dead"}),
    )


def work(hdfs: SimHdfs, user: str) -> None:
    """Write that a run is at work in all of HDFS, as one that lives does again and again."""
    line = {"run": RUN, "at": hdfs.now().isoformat(), "path": "/", "who": "root@edge1", "principal": str(ME)}
    put(hdfs, user, f"{OURS}/audit/{RUN}-000000-intents.jsonl", lines(line | {"action": "run", "reason": "to recover"}))


def seen(hdfs: SimHdfs, hours: int) -> list[FileHistory]:
    """Return a file that was looked at for so many hours and never changed."""
    now = hdfs.now()
    state = FileState(FILE, 7, "alice", now - timedelta(hours=9), is_open=True, length=5, visible_length=5)
    history = FileHistory.begin(OpenFile(FILE, 7, WRITER), state, now - timedelta(hours=hours))
    return [replace(history, checks=60, steady_until=now)]


def history(hdfs: SimHdfs, told: list[str] | None = None) -> ScanHistory:
    return ScanHistory(cast(Hdfs, hdfs), OURS, (told if told is not None else []).append)


def test_a_writer_whom_a_stranger_calls_dead_keeps_its_lease(hdfs: SimHdfs) -> None:
    call_dead(hdfs, "mallory")
    leases = SimLeases(hdfs, {FILE: WRITER}, alive={WRITER})
    assert journal(hdfs).renewed_by_others(MINUTE) == {}
    assert SimRecovery(leases, OURS).recovered() == []
    assert leases.asked == [WRITER]


def test_a_writer_whom_a_run_of_ours_calls_dead_is_asked_and_keeps_its_lease(hdfs: SimHdfs) -> None:
    """A driver of ours, or a process that was cut off for a minute: the NameNode alone knows."""
    call_dead(hdfs, "streamer")
    leases = SimLeases(hdfs, {f"/data/{number}": WRITER for number in range(1000)}, alive={WRITER})
    run = SimRecovery(leases, OURS)
    assert run.recovered() == []
    assert leases.asked == [WRITER, WRITER]
    assert [line for line in run.told if WRITER in line] == [line for line in run.told if "is asked again at" in line]


def test_a_dead_writer_is_recovered_once_its_lease_tells_it_from_a_living_one(hdfs: SimHdfs) -> None:
    """The first run's probe renewed the lease on the files of the second one's folder."""
    leases = SimLeases(hdfs, {"/one/a": WRITER} | {f"/two/{number}": WRITER for number in range(1000)})
    began = hdfs.now()
    assert SimRecovery(leases, OURS, "/one").recovered() == ["/one/a"]
    assert len(SimRecovery(leases, OURS, "/two").recovered()) == 1000
    assert leases.asked == [WRITER] * 3
    assert hdfs.now() - began < 2 * MINUTE


def test_files_of_other_writers_do_not_wait_for_one_that_is_asked_again(hdfs: SimHdfs) -> None:
    leases = SimLeases(hdfs, {"/one/a": WRITER, "/two/b": WRITER, "/two/c": "client-2", "/two/d": "client-2"})
    SimRecovery(leases, OURS, "/one").recovered()
    assert SimRecovery(leases, OURS, "/two").recovered() == ["/two/c", "/two/d", "/two/b"]


def test_a_file_that_grows_while_its_holder_waits_to_be_asked_again_is_left_alone(hdfs: SimHdfs) -> None:
    leases = SimLeases(hdfs, {"/one/a": WRITER, "/two/b": WRITER, "/two/c": WRITER}, grows={"/two/b": MINUTE / 2})
    SimRecovery(leases, OURS, "/one").recovered()
    assert SimRecovery(leases, OURS, "/two").recovered() == ["/two/c"]
    assert leases.asked == [WRITER] * 3


def test_ten_runs_that_meet_one_dead_writer_all_get_its_files(hdfs: SimHdfs) -> None:
    leases = SimLeases(hdfs, {f"/{number}/a": WRITER for number in range(10)})
    runs = [SimRecovery(leases, OURS, f"/{number}") for number in range(10)]
    assert [run.recovered() for run in runs] == [[f"/{number}/a"] for number in range(10)]


def test_a_record_of_the_future_makes_no_run_wait_for_ever(hdfs: SimHdfs) -> None:
    hdfs.clock.ahead += timedelta(days=400)
    call_dead(hdfs, "streamer")
    hdfs.clock.ahead -= timedelta(days=400)
    leases = SimLeases(hdfs, {FILE: WRITER}, alive={WRITER})
    assert SimRecovery(leases, OURS).recovered() == []
    assert leases.asked == [WRITER]


def test_a_stranger_who_says_that_mallory_is_at_work_is_not_waited_for(hdfs: SimHdfs) -> None:
    told: list[str] = []
    run = journal(hdfs, told)
    run.begun("/data")
    for _ in range(100):
        work(hdfs, "mallory")
        assert run.runs_before() == []
        hdfs.clock.sleep(1)
    assert told == [
        f"in {OURS}/audit only files of streamer count, so these don't: {RUN}-000000-intents.jsonl of mallory"
    ]


def test_two_runs_of_one_user_still_see_each_other_beside_a_stranger(hdfs: SimHdfs) -> None:
    work(hdfs, "mallory")
    first = journal(hdfs)
    first.begun("/data")
    hdfs.clock.sleep(1)
    second = journal(hdfs)
    second.begun("/data")
    assert [run.run for run in second.runs_before()] == [first.run_id]
    assert first.runs_before() == []


def test_a_file_that_a_stranger_says_was_quiet_for_hours_was_not_seen(hdfs: SimHdfs) -> None:
    told: list[str] = []
    with hdfs.as_user("mallory"):
        history(hdfs).save(seen(hdfs, hours=5), hdfs.now())
    assert history(hdfs, told).load() == {}
    assert told == [f"in {OURS} only files of streamer count, so these don't: sightings.json of mallory"]


def test_what_our_own_run_saw_yesterday_still_counts(hdfs: SimHdfs) -> None:
    history(hdfs).save(seen(hdfs, hours=5), hdfs.now())
    done = journal(hdfs)
    done.asked({FILE: WRITER}, "to learn")
    done.answered({FILE: "its holder is dead"})
    done.flush()
    hdfs.clock.sleep(timedelta(days=1).total_seconds())
    assert history(hdfs).load()[FILE].unchanged_for > timedelta(hours=4)
    (record,) = read_journal(OwnFiles(cast(Hdfs, hdfs)), OURS)
    assert (record.holder, record.why, record.owner) == (WRITER, "its holder is dead", "streamer")


def test_the_journal_shows_no_strangers_record_and_names_its_author(hdfs: SimHdfs) -> None:
    told: list[str] = []
    call_dead(hdfs, "mallory")
    assert list(read_journal(OwnFiles(cast(Hdfs, hdfs), told.append), OURS)) == []
    assert [line.count("of mallory") for line in told] == [2]


def test_one_line_tells_of_a_thousand_files_of_a_stranger(hdfs: SimHdfs) -> None:
    told: list[str] = []
    for number in range(1000):
        put(hdfs, "mallory", f"{OURS}/\x1b[2J{number:04}")
    assert history(hdfs, told).load() == {}
    (line,) = told
    assert line.endswith("and 995 more")
    assert "\x1b" not in line


def test_a_strangers_flood_hides_no_record_of_ours_and_ends_no_recovery(hdfs: SimHdfs) -> None:
    """In a folder that somebody has opened; most names come before ours, and all look like records."""
    told: list[str] = []
    hdfs.most_rows = 100
    call_dead(hdfs, "streamer")
    for number in range(2000):
        put(hdfs, "mallory", f"{OURS}/audit/{RUN[:-8]}{number:08x}-000000-intents.jsonl")
    run = journal(hdfs, told)
    assert run.renewed_by_others(MINUTE).keys() == {WRITER}
    run.begun("/data")
    assert run.runs_before() == []
    assert len(told) == 1


def test_gigabytes_under_the_name_of_our_history_are_not_read(hdfs: SimHdfs) -> None:
    put(hdfs, "mallory", f"{OURS}/sightings.json", " " * 1000)
    hdfs.at_request = lambda request, path: pytest.fail(path) if request == "read" else None
    assert history(hdfs).load() == {}


def test_a_record_of_ours_that_is_longer_than_anything_we_write_is_left_out(hdfs: SimHdfs) -> None:
    told: list[str] = []
    put(hdfs, "streamer", f"{OURS}/audit/{RUN}-000000-intents.jsonl", " " * (16 * 1024 * 1024 + 1))
    run = journal(hdfs, told)
    assert (run.renewed_by_others(MINUTE), run.runs_before()) == ({}, [])
    assert [line.partition(" is left out: ")[2] for line in told] == ["it is longer than 16777216 bytes"]


@pytest.mark.parametrize("said", ["9" * 5000, "9" * 20])
def test_a_companion_that_states_no_length_of_a_file_ends_no_recovery(hdfs: SimHdfs, said: str) -> None:
    put(hdfs, "mallory", companion_of(FILE), said)
    assert ValidLengths(cast(Hdfs, hdfs)).of(FILE) is None


def test_a_name_that_a_stranger_took_is_passed_over() -> None:
    squatted = anyones()
    for name in ("leases.streamer/sightings.json", "leases.streamer.2/x", "leases.streamer.3"):
        put(squatted, "mallory", f"{STATE}/{name}")
    for name in ("leases.streamer", "leases.streamer.2"):
        squatted.owners[f"{STATE}/{name}"] = "mallory"
    requests: list[str] = []
    squatted.at_request = lambda request, path: requests.append(request)
    assert folder(squatted) == f"{OURS}.4"
    assert requests == ["status", "list"]
    (where, kind), hdfs = (STATE, FolderKind.LEASES), cast(Hdfs, squatted)
    told = f"{OURS} belongs to mallory, so it is passed over and {OURS}.4 is used"
    assert (passed_over(hdfs, where, kind, f"{OURS}.4"), passed_over(hdfs, where, kind, OURS)) == (told, "")


def test_a_folder_that_is_ours_stays_ours_whatever_becomes_of_the_name_before() -> None:
    squatted = anyones()
    put(squatted, "streamer", f"{OURS}.2/sightings.json")
    squatted.owners[f"{OURS}.2"] = "streamer"
    assert folder(squatted) == f"{OURS}.2"


@pytest.mark.parametrize("user", ["etl", "alice", "hdfs@OTHER.REALM", "weird/:%user"])
def test_the_folder_is_named_after_the_short_name_that_hdfs_gives(hdfs: SimHdfs, user: str) -> None:
    """Rules of auth_to_local and proxy users make it another one than the principal's own."""
    with hdfs.as_user(user):
        place = folder(hdfs)
        assert place.startswith(f"{STATE}/leases.")
        assert not set(place.removeprefix(f"{STATE}/")) & set("/:")
        run = journal(hdfs, place=place)
        run.asked({FILE: WRITER}, "to learn")
        run.answered({FILE: "its holder is dead"})
        run.flush()
        assert folder(hdfs) == place
        assert journal(hdfs, place=place).renewed_by_others(MINUTE).keys() == {WRITER}


def test_two_users_have_two_folders_and_believe_only_themselves(hdfs: SimHdfs) -> None:
    with hdfs.as_user("alice"):
        assert folder(hdfs) == f"{STATE}/leases.alice"
    assert folder(hdfs) == OURS


ORDERS = replace(TICKET_SPEC, checkpoints=("/data/orders/checkpoint",))


@dataclass
class Streams:
    """Streams in a state_dir whose supervisor is `streamer`, seen by somebody who recovers leases as `etl`."""

    hdfs: SimHdfs
    yarn: SimYarn
    clock: SimClock

    def keep_copy(self, spec: StreamSpec, user: str) -> None:
        """Keep the declaration, as the supervisor does who submits the stream as this user."""
        name = f"declared.streamer/{stream_of(spec)}/{copy_name(fingerprint(spec), user)}"
        put(self.hdfs, "streamer", f"{STATE}/{name}", written_copy(spec, user))

    def claim(self, spec: StreamSpec, user: str, number: int = 1, adopted: Application | None = None) -> None:
        with self.hdfs.as_user(user):
            self.hdfs.make_folder(stream_of(spec).folder, "755")
        draft = ClaimDraft(number, "nonce", spec, DAY, {}, "test", adopted.id if adopted else None)
        put(self.hdfs, user, f"{stream_of(spec).folder}/{claim_file(number)}", written_claim(draft, f"{user}@edge1"))

    def start(self, user: str, spec: StreamSpec | None = None, number: int = 1) -> Application:
        return self.yarn.start(frozenset(stream_of(spec).tags(number) if spec else ()), user=user)

    def end(self, user: str, spec: StreamSpec, number: int = 1) -> Application:
        return self.yarn.end(self.start(user, spec, number).id)

    def is_finished(self, name: str = "orders") -> bool | None:
        with self.hdfs.as_user("etl"):
            return Attributions(session_of(self.hdfs, self.yarn)).is_finished(name)

    def writers_of(self, *paths: str) -> list[Attribution]:
        now = self.clock.now()
        states = [FileState(path, 1, "alice", now, is_open=True, length=1) for path in paths]
        files = [FileHistory.begin(OpenFile(state.path, 1, WRITER, "worker7"), state, now) for state in states]
        with self.hdfs.as_user("etl"):
            writers = Attributions(session_of(self.hdfs, self.yarn))
            return [writers.of(file) for file in files]


def stream_of(spec: StreamSpec) -> StreamId:
    return StreamId(spec.name, STATE)


@pytest.fixture
def streams() -> Streams:
    hdfs = anyones()
    return Streams(hdfs, SimYarn(hdfs.clock), hdfs.clock)


def test_a_stranger_ends_no_adopted_job_by_an_application_with_its_tag(streams: Streams) -> None:
    job = streams.start("alice")
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice", adopted=job)
    assert streams.is_finished() is False
    streams.end("mallory", ORDERS)
    assert streams.is_finished() is False
    del streams.yarn.apps[job.id]
    assert streams.is_finished() is None


def test_an_adopted_job_is_finished_when_it_has_ended(streams: Streams) -> None:
    job = streams.start("alice")
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice", adopted=job)
    streams.yarn.end(job.id)
    assert streams.is_finished() is True
    assert [writer.finished for writer in streams.writers_of("/data/orders/checkpoint/offsets/.1.tmp")] == [True]


def test_an_earlier_generation_that_ended_finishes_no_adopted_job(streams: Streams) -> None:
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice")
    streams.end("alice", ORDERS)
    assert streams.is_finished() is True
    streams.claim(ORDERS, "alice", 2, adopted=streams.start("alice"))
    assert streams.is_finished() is False


def test_an_adopted_job_of_somebody_else_says_nothing(streams: Streams) -> None:
    """The stream's user may write any id in his claim."""
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice", adopted=streams.yarn.end(streams.start("bob").id))
    assert streams.is_finished() is None


def test_a_stranger_keeps_no_stream_from_having_ended(streams: Streams) -> None:
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice")
    streams.end("alice", ORDERS)
    streams.start("mallory", ORDERS)
    assert streams.is_finished() is True


def test_where_yarn_names_no_users_a_strangers_application_hides_one_stream_at_most(streams: Streams) -> None:
    """An old ResourceManager doesn't tell our own name, so that the stranger might be ours."""
    other = replace(ORDERS, name="other", checkpoints=("/data/other/checkpoint",))
    for spec in (ORDERS, other):
        streams.keep_copy(spec, "alice")
        streams.claim(spec, "alice")
    streams.end("alice", other)
    streams.yarn.whoami = None
    streams.start("mallory", ORDERS)
    writers = streams.writers_of("/data/orders/checkpoint/offsets/.1.tmp", "/data/other/checkpoint/offsets/.1.tmp")
    assert [(writer.stream, writer.finished) for writer in writers] == [("orders", None), ("other", True)]


def test_a_stranger_with_a_folder_of_mallorys_own_declares_nobodys_files_finished(streams: Streams) -> None:
    ghost = replace(ORDERS, name="ghost", checkpoints=("/data/landing",))
    streams.claim(ghost, "mallory")
    streams.end("mallory", ghost)
    assert streams.is_finished("ghost") is None
    assert [writer.finished for writer in streams.writers_of("/data/landing/part-0")] == [None]


def test_a_tenant_claims_no_checkpoint_that_nobody_declared_for_mallory(streams: Streams) -> None:
    declared = replace(ORDERS, name="tiny", checkpoints=("/data/tiny/checkpoint",))
    streams.keep_copy(declared, "bob")
    streams.claim(replace(declared, checkpoints=("/data/landing",)), "bob")
    streams.end("bob", declared)
    assert streams.is_finished("tiny") is True
    assert [writer.finished for writer in streams.writers_of("/data/landing/part-0")] == [None]


def test_a_nearer_path_in_a_strangers_claim_hides_nobodys_checkpoint(streams: Streams) -> None:
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice")
    streams.end("alice", ORDERS)
    streams.claim(replace(ORDERS, name="ghost", checkpoints=("/data/orders/checkpoint/offsets",)), "mallory")
    (writer,) = streams.writers_of("/data/orders/checkpoint/offsets/.1.tmp")
    assert (writer.stream, writer.finished) == ("orders", True)


def test_a_stream_is_looked_up_once_for_a_thousand_files(streams: Streams) -> None:
    streams.claim(ORDERS, "streamer")
    streams.end("streamer", ORDERS)
    writers = Attributions(session_of(streams.hdfs, streams.yarn))
    assert writers.is_finished("orders") is True
    streams.hdfs.at_request = streams.yarn.at_request = lambda request, about: pytest.fail(about)
    assert writers.is_finished("orders") is True


def test_the_checkpoint_that_was_declared_counts_for_every_reader(streams: Streams) -> None:
    streams.keep_copy(ORDERS, "alice")
    streams.claim(ORDERS, "alice")
    ended = streams.end("alice", ORDERS)
    (writer,) = streams.writers_of("/data/orders/checkpoint/offsets/.1.tmp")
    assert (writer.stream, writer.application, writer.finished) == ("orders", ended.id, True)


def test_a_stream_that_runs_as_a_supervisors_user_needs_no_copy(streams: Streams) -> None:
    streams.claim(ORDERS, "streamer")
    streams.end("streamer", ORDERS)
    assert [writer.finished for writer in streams.writers_of("/data/orders/checkpoint/offsets/.1.tmp")] == [True]
