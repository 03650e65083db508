"""A person gives a checkpoint to a stream: what is checked before, and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Conflict, Denied, RestartAborted, Unavailable
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.checkpoint_owner import Owner
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import OnChange
from airflow_kstream.policy.streams.checkpoint.ownership import time_to_look
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.checkpoint.ownership import owner_of
from airflow_kstream.supervise.streams.checkpoint.take_over import TakenOver, take_over
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.run import StreamRun
from tests.simulated.interrupted import (
    COPY,
    HERE,
    RECORD,
    SPEC,
    Interrupted,
    alive,
    hdfs,
    newest,
    owner,
    rewrite,
    subject,
    supervise,
)
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, SimYarn
from tests.simulated.yarn import START

__all__ = ["hdfs"]


def taken(run: StreamRun, reason: str = "") -> TakenOver:
    return take_over(run, reason, tell=lambda line: None)


def test_data_of_nobody_is_taken_over_and_continued(life: Life, hdfs: Interrupted) -> None:
    life.engine.complete_epoch(SPEC)
    life.yarn.start(frozenset({"by-hand"}))
    report = taken(life.run, "the old cron job is gone")
    assert report.checkpoints == (HERE,)
    assert life.clock.ahead == timedelta(seconds=30)
    said = "; ".join(report.checked)
    assert f"{HERE} had no owner" in said
    assert "applications of streamer that run and are of no stream: application_1_0001" in said
    assert f"{HERE} moved last at 20" in said
    assert said.endswith("UTC and did not for 30s")
    entry = newest(life.run)
    assert entry is not None
    assert (entry.word, entry.reason) == ("take-over", f"the old cron job is gone; {said}")
    assert supervise(life.run).phase is Phase.RUNNING


def test_a_stream_that_is_stopped_keeps_what_it_took_over_for_its_first_start(life: Life, hdfs: Interrupted) -> None:
    life.engine.complete_epoch(SPEC)
    taken(life.run)
    life.set_desired(DesiredState.STOPPED)
    supervise(life.run)
    life.set_desired(DesiredState.RUNNING)
    assert supervise(life.run).generation == 1


def test_a_checkpoint_that_moves_meanwhile_is_not_taken(life: Life, hdfs: Interrupted) -> None:
    life.engine.complete_epoch(SPEC)
    with pytest.raises(Conflict, match="moved from batch 0 to 1 meanwhile: a job writes it"):
        take_over(life.run, "", tell=lambda line: life.engine.complete_epoch(SPEC))
    assert newest(life.run) is None


@pytest.mark.parametrize("wanted", [DesiredState.STOPPED, DesiredState.RUNNING])
def test_an_owner_that_runs_keeps_its_checkpoint_whatever_is_wanted(
    life: Life, hdfs: Interrupted, wanted: DesiredState
) -> None:
    supervise(life.run)
    life.set_desired(wanted)
    with pytest.raises(Conflict, match=r"is written by application_1_0001 of stream orders .*; stop that stream first"):
        taken(subject(life, COPY, "/elsewhere"))


def test_an_owner_whose_application_may_still_arrive_keeps_its_checkpoint(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    life.yarn.apps.clear()
    rival = subject(life, COPY)
    life.clock.ahead += timedelta(minutes=4)
    with pytest.raises(Conflict, match=r"generation 1 of .* was claimed .*; try again in 6m\. Retrying may help"):
        taken(rival)
    life.clock.ahead += SPEC.submit.ttl
    assert taken(rival).checkpoints == (HERE,)
    assert not any(name.startswith("fence") for name in life.run.folder.names()), "it may not start late"


@pytest.mark.parametrize("state_dir", [CLUSTER.state_dir, "/elsewhere"])
def test_the_claim_of_an_owner_in_a_frozen_cluster_is_not_given_up(
    life: Life, hdfs: Interrupted, state_dir: str
) -> None:
    """What the former owner's people froze stays as it is, from whatever state_dir the checkpoint is taken over."""
    supervise(life.run)
    life.yarn.apps.clear()
    life.clock.ahead += SPEC.submit.ttl
    brake = FreezeStore(life.run.session)
    brake.freeze(timedelta(hours=4), "a new NameNode")
    before = owner(life.run), life.run.folder.names()
    with pytest.raises(Conflict, match=r"frozen until .*: a new NameNode.* Retrying may help"):
        taken(subject(life, COPY, state_dir))
    assert (owner(life.run), life.run.folder.names()) == before
    brake.lift("it is there")
    assert taken(subject(life, COPY, state_dir)).checkpoints == (HERE,)


def test_an_owner_keeps_its_checkpoint_while_the_job_that_it_adopted_runs(life: Life, hdfs: Interrupted) -> None:
    """The job carries no tags of the stream, and it commits nothing during the look."""
    life.engine.complete_epoch(SPEC)
    theirs = life.yarn.start(frozenset({"by-hand"}))
    adopt(life.run, theirs.id)
    life.clock.ahead += timedelta(days=1)
    rival = subject(life, COPY)
    with pytest.raises(Conflict, match=f"is written by {theirs.id} of stream orders"):
        taken(rival)
    life.yarn.end(theirs.id)
    assert taken(rival).checkpoints == (HERE,)


@dataclass
class Deposed(SimYarn):
    """A ResourceManager that was frozen, says ACTIVE, and lacks what was submitted to the other one, which is away.

    It knows from some moment on; `confirm_absence` is what the client makes of it.
    """

    knows: datetime = START
    asked: list[tuple[str, timedelta]] = field(default_factory=list)

    def applications(self, tag: str) -> tuple[Application, ...]:
        return super().applications(tag) if self.knows <= self.clock.now() else ()

    def confirm_absence(self, of: str, age: timedelta, settled: timedelta) -> None:
        assert settled == SPEC.watch.recovery_wait
        self.asked.append((of, age))
        if self.clock.now() < self.knows:
            raise Unavailable("another ResourceManager can't be asked")


def rival_of_a_deposed(life: Life, learns: timedelta) -> StreamRun:
    """Return another stream with the same checkpoint, whose ResourceManager learns of what runs after so long."""
    yarn = Deposed(life.clock, life.yarn.apps, knows=life.clock.now() + learns)
    life.use(life.hdfs, yarn=yarn)
    return subject(life, COPY)


@pytest.mark.parametrize("out_of_reach", [False, True])
def test_an_owner_that_one_resourcemanager_alone_lacks_keeps_its_checkpoint(
    life: Life, hdfs: Interrupted, out_of_reach: bool
) -> None:
    supervise(life.run)
    life.clock.ahead += timedelta(days=1)
    theirs = life.run.id.folder
    if out_of_reach:
        hdfs.at_request = refusing(theirs)
    with pytest.raises(Conflict, match=r"is written by application_1_0001.* of stream orders"):
        taken(rival_of_a_deposed(life, timedelta(minutes=1)))
    hdfs.at_request = lambda request, path: None
    assert any(name.startswith("fence") for name in hdfs.names(theirs))
    assert owner(life.run)


def refusing(folder: str) -> Callable[[str, str], None]:
    def refuse(request: str, path: str) -> None:
        if path == folder:
            raise Denied("permission denied")

    return refuse


def test_a_resourcemanager_that_stays_away_keeps_nobody_from_a_take_over(life: Life, hdfs: Interrupted) -> None:
    """What is missing for long enough is gone: see ActiveResourceManager."""
    life.yarn.end(str(supervise(life.run).job.application))
    life.yarn.apps.clear()
    life.clock.ahead += timedelta(days=1)
    assert taken(rival_of_a_deposed(life, SPEC.watch.recovery_wait)).checkpoints == (HERE,)


def test_the_absence_of_an_adopted_job_is_judged_by_no_claim(life: Life, hdfs: Interrupted) -> None:
    """It may have run for days before, so a ResourceManager that became active since then may not have recovered it."""
    theirs = life.yarn.start(frozenset())
    adopt(life.run, theirs.id)
    life.clock.ahead += SPEC.submit.ttl
    life.yarn.apps.clear()
    yarn = Deposed(life.clock)
    life.use(hdfs, yarn=yarn)
    taken(subject(life, COPY))
    assert yarn.asked[0] == (theirs.id, timedelta.max)


def test_without_a_trusted_answer_nothing_is_taken(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    life.clock.ahead += timedelta(days=1)
    with pytest.raises(Unavailable):
        taken(rival_of_a_deposed(life, timedelta(days=1)))
    assert any(name.startswith("fence") for name in life.run.folder.names())


def test_an_owner_that_is_gone_loses_it_and_submits_nothing_any_longer(life: Life, hdfs: Interrupted) -> None:
    life.yarn.end(str(supervise(life.run).job.application))
    life.engine.complete_epoch(SPEC)
    rival = subject(life, COPY, "/elsewhere")
    report = taken(rival)
    assert "was of stream orders of state_dir /kstream" in report.checked[0]
    assert report.checked[0].endswith("no application of it runs on this cluster")
    assert supervise(rival).phase is Phase.RUNNING
    with pytest.raises(Conflict, match="belongs to stream copy of state_dir /elsewhere"):
        supervise(life.run)
    assert len(alive(life)) == 1


def test_a_state_folder_that_we_may_not_read_is_no_obstacle(life: Life, hdfs: Interrupted) -> None:
    life.yarn.end(str(supervise(life.run).job.application))
    hdfs.at_request = refusing(life.run.id.folder)
    assert taken(subject(life, COPY, "/elsewhere")).checkpoints == (HERE,)


def test_a_running_stream_gets_its_checkpoint_back_without_a_wait(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    rewrite(hdfs, stream="former")
    life.request_restart()
    with pytest.raises(RestartAborted):
        supervise(life.run)
    now = life.clock.ahead
    assert "application_1_0001 of this stream runs" in "; ".join(taken(life.run).checked)
    assert life.clock.ahead == now
    assert supervise(life.run).generation == 2


def test_an_owner_that_a_newer_program_wrote_is_left_alone(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    life.yarn.apps.clear()
    rewrite(hdfs, version=2)
    with pytest.raises(Conflict, match="by a newer version of this program"):
        taken(subject(life, COPY))


def test_what_one_owns_is_not_taken_twice(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    assert taken(life.run).checkpoints == ()


def test_a_claim_of_a_stream_on_another_filesystem_is_not_looked_for_here(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    life.yarn.apps.clear()
    rewrite(hdfs, filesystem="hdfs://other")
    assert life.run.folder.names()
    assert taken(subject(life, COPY)).checkpoints == (HERE,)


def test_the_checkpoints_are_watched_for_twice_the_time_between_their_batches() -> None:
    def of(*minutes: float) -> Checkpoint:
        return Checkpoint(HERE, "q", {n: START + timedelta(minutes=at) for n, at in enumerate(minutes)})

    assert time_to_look(SPEC, [of()]) == timedelta(seconds=30)
    assert time_to_look(SPEC, [of(0, 0.1, 0.2)]) == timedelta(seconds=30)
    assert time_to_look(SPEC, [of(0, 2, 4, 6)]) == timedelta(minutes=4)
    assert time_to_look(SPEC, [of(0, 60, 120)]) == timedelta(minutes=10)
    assert time_to_look(replace(SPEC, checkpoints=()), []) == timedelta(seconds=30)


def test_an_owner_whose_last_claim_was_given_up_is_gone(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    life.yarn.apps.clear()
    claim = life.run.folder.claim(life.run.folder.names())
    assert claim is not None
    life.run.folder.take_fence(claim.fence)
    assert taken(subject(life, COPY)).checkpoints == (HERE,)


def says(hdfs: Interrupted, number: int, whose: Owner, author: str = "mallory") -> None:
    """Write an entry as another user, in a record that everybody can write in."""
    hdfs.modes[RECORD.rstrip("/")] = "777"
    with hdfs.as_user(author):
        hdfs.write(f"{RECORD}owner-{number:06d}", json.dumps({"version": 1, "nonce": "x", **vars(whose)}))


GHOST = Owner("ghost", "/elsewhere", CLUSTER.default_fs)


class TestStrangers:
    """What others wrote into the record, and started with the former owner's tags."""

    @pytest.mark.parametrize("entries", [1, 30])
    def test_a_strangers_entry_hides_no_former_owner_that_runs(
        self, life: Life, hdfs: Interrupted, entries: int
    ) -> None:
        supervise(life.run)
        for number in range(2, 2 + entries):
            says(hdfs, number, GHOST)
        with pytest.raises(Conflict, match=r"is written by application_1_0001 of stream orders .*; stop that stream"):
            taken(subject(life, COPY))

    def test_a_strangers_application_with_the_owners_tags_holds_nothing_up(self, life: Life, hdfs: Interrupted) -> None:
        life.yarn.end(str(supervise(life.run).job.application))
        theirs = life.yarn.start(frozenset(life.run.id.tags(1)), user="mallory")
        report = taken(subject(life, COPY))
        assert report.checkpoints == (HERE,)
        assert f"(not counted, although tagged like one: {theirs.id} of user mallory)" in "; ".join(report.checked)

    def test_one_that_may_be_the_owners_by_another_name_is_not_called_a_strangers(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        """YARN's rules may give the owner another name than HDFS's, and no copy tells."""
        life.yarn.end(str(supervise(life.run).job.application))
        life.yarn.start(frozenset(life.run.id.tags(2)), user="svc_streamer")
        life.yarn.whoami = None
        for name in [name for name in hdfs.files if "/declared." in name]:
            hdfs.delete(name)
        with pytest.raises(Conflict, match="is written by application_1_0002 of stream orders"):
            taken(subject(life, COPY))

    def test_of_a_stream_without_claims_all_applications_count(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        hdfs.delete(life.run.id.folder, recursive=True)
        with (
            hdfs.as_user("hdfs"),
            pytest.raises(Conflict, match="application_1_0001 of user streamer of stream"),
        ):
            taken(subject(life, COPY))

    def test_a_former_owner_that_writes_elsewhere_now_runs_on(self, life: Life, hdfs: Interrupted) -> None:
        """A stranger could name any stream that runs, too."""
        supervise(life.run)
        moved = subject(life, replace(SPEC, checkpoints=("/data/moved",), on_change=OnChange.RESTART))
        assert supervise(moved).generation == 2
        report = taken(subject(life, COPY))
        assert report.checkpoints == (HERE,)
        assert "it is declared with other checkpoints now" in report.checked[0]
        assert alive(life) == ["application_1_0002"]
        assert any(name.startswith("fence-000002") for name in life.run.folder.names())

    def test_a_strangers_own_stream_refuses_until_somebody_removes_the_entry(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        theirs = Owner("evil", "/user/mallory", CLUSTER.default_fs)
        life.yarn.start(frozenset(StreamId(theirs.stream, theirs.state_dir).tags(1)), user="mallory")
        life.engine.complete_epoch(SPEC)
        says(hdfs, 1, theirs)
        with pytest.raises(Conflict, match=rf"mallory wrote that, .*`hdfs dfs -rm {RECORD}owner-000001` removes it"):
            taken(life.run)
        hdfs.delete(f"{RECORD}owner-000001")
        assert taken(life.run).checkpoints == (HERE,)

    def test_a_replaced_owner_that_still_runs_is_named_with_its_entry(self, life: Life, hdfs: Interrupted) -> None:
        life.yarn.start(frozenset(StreamId(GHOST.stream, GHOST.state_dir).tags(1)))
        says(hdfs, 1, GHOST, "hdfs")
        says(hdfs, 2, owner_of(life.run), "hdfs")
        with pytest.raises(Conflict, match=rf"of stream ghost .*was the owner says {RECORD}owner-000001"):
            taken(subject(life, COPY))


def test_who_the_jobs_user_is_yarn_tells(life: Life, hdfs: Interrupted) -> None:
    life.yarn.whoami = "svc_streamer"
    by_hand = life.yarn.start(frozenset())
    assert f"applications of svc_streamer that run and are of no stream: {by_hand.id}" in taken(life.run).checked
