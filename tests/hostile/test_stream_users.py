"""What a stream's own user may write, or another supervisor, and what it must not change.

A stream runs as `etl`; `ops` is a supervisor of another Airflow. Each may write in a place of its own, where a reader
believes it, and says there more than it may.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, folder_name
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput
from airflow_kstream.model.streams.contract import accepted_marker, claim_file, ended_file
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Missing, Position, StreamId
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim
from airflow_kstream.supervise.streams.folder.memory import past_ends
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import claimed_spec
from airflow_kstream.supervise.streams.restart.former_spec import last_that_committed
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER
from tests.simulated.tenants import Tenant, spec_of_user
from tests.simulated.yarn import WEEK

STATE_DIR = CLUSTER.state_dir
FAILED = ApplicationState.FAILED
CODE = "User class threw exception: java.lang.IllegalStateException: no such column"
FIRST = "application_1_0001"


@pytest.fixture
def tenant(life: Life, served: None) -> Tenant:
    return Tenant(life)


def keep(life: Life, stream: StreamId, spec: StreamSpec, user: str, by: str = "streamer") -> None:
    """Let a supervisor keep a copy of a declaration, as read when the stream ran as this user."""
    folder = f"{STATE_DIR}/{folder_name(FolderKind.DECLARED, by)}"
    with life.hdfs.as_user(by):
        life.hdfs.make_folder(folder, "755")
        life.hdfs.write(f"{folder}/{stream}/{copy_name(fingerprint(spec), user)}", written_copy(spec, user))


def hand_over(life: Life, user: str) -> None:
    """Give the stream and its data to this user, as HDFS's superuser does."""
    for path in [life.run.id.folder, *(path for path in life.hdfs.owners if path.startswith("/data/"))]:
        life.hdfs.owners[path] = user


class TestAHandOver:
    """The stream ran as `streamer`, who is a supervisor, and is declared as `etl` since."""

    def test_the_present_user_chooses_no_declaration_of_the_former_one(self, life: Life, tenant: Tenant) -> None:
        life.begin()
        life.yarn.end(FIRST)
        hand_over(life, "etl")
        assert tenant.reconcile().generation == 2
        with life.hdfs.as_user("etl"):
            draft = ClaimDraft(3, "chosen", SPEC, WEEK, {}, "")
            life.hdfs.write(f"{tenant.stream.folder}/{claim_file(3)}", written_claim(draft, "etl"))
        known = claimed_spec(tenant.session(CLUSTER.watcher), tenant.stream)
        assert not known.submittable
        assert known.doubt.startswith("generation 3 was claimed by etl, and no supervisor of")

    @pytest.mark.parametrize("name", [claim_file(1), claim_file(3)])
    def test_what_the_former_user_claimed_starts_nothing_under_any_name(
        self, life: Life, tenant: Tenant, name: str
    ) -> None:
        """Who owns a folder may delete its files, and rename a supervisor's."""
        life.begin()
        life.yarn.end(FIRST)
        hand_over(life, "etl")
        assert tenant.reconcile().generation == 2
        life.yarn.end("application_1_0002")
        with life.hdfs.as_user("etl"):
            life.hdfs.delete(f"{tenant.stream.folder}/{claim_file(2)}")
        folder = tenant.stream.folder
        renamed = f"{folder}/{claim_file(1)}", f"{folder}/{name}"
        life.hdfs.files[renamed[1]] = life.hdfs.files.pop(renamed[0])
        life.hdfs.owners[renamed[1]] = life.hdfs.owners.pop(renamed[0])

        def start() -> None:
            known = claimed_spec(tenant.session(CLUSTER.watcher), tenant.stream)
            run = StreamRun(tenant.session(known.identity(CLUSTER)), known.spec, life.engine)
            Reconciler(run, tell=lambda line: None).run(Mode.ENSURE)

        with pytest.raises((Conflict, Denied, InvalidInput)):
            start()
        assert len(life.yarn.apps) == 2

    def test_until_the_next_claim_the_former_users_one_names_what_it_ran_with(self, life: Life, tenant: Tenant) -> None:
        assert tenant.reconcile().generation == 1
        hand_over(life, "billing")
        claim = tenant.looking().claim_of(1)
        assert (claim.file.author, claim.file.copied, claim.spec) == ("etl", True, tenant.spec)


class TestAnotherSupervisorsCopy:
    """Fingerprints leave policies and notifiers out, so that two supervisors' copies may differ in them."""

    @pytest.fixture
    def both(self, life: Life, tenant: Tenant) -> Tenant:
        life.hdfs.write(f"{STATE_DIR}/{SUPERVISORS_FILE}", "ops\n")
        tenant.reconcile()
        life.clock.ahead += timedelta(seconds=5)
        theirs = replace(
            tenant.spec, notify=NotifyPolicy("their.Notifier"), restart=replace(SPEC.restart, plan_ratio=0.3)
        )
        keep(life, tenant.stream, theirs, "etl", by="ops")
        return tenant

    def test_ours_counts_although_theirs_is_newer(self, both: Tenant) -> None:
        known = claimed_spec(both.session(CLUSTER.watcher), both.stream)
        assert known.submittable
        assert (known.spec.notify, known.spec.restart) == (both.spec.notify, both.spec.restart)

    def test_without_one_of_ours_theirs_tells_what_to_submit_and_nobody_to_notify(self, both: Tenant) -> None:
        for path in both.copies:
            if "/declared.streamer/" in path:
                both.hdfs.delete(path)
        known = claimed_spec(both.session(CLUSTER.watcher), both.stream)
        assert known.submittable
        assert known.spec.notify == NotifyPolicy()
        assert both.watched().people.notify == NotifyPolicy()


class TestANeighboursEnds:
    """A neighbour's record of an end may make another stream's the environment's; it must not end its looks."""

    @pytest.mark.parametrize("at", ["2026-11-28T03:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
    def test_no_time_in_them_hinders_another_stream(self, life: Life, at: str) -> None:
        life.begin()
        life.yarn.end(FIRST, FAILED, CODE)
        assert life.reconcile(Mode.ENSURE).generation == 2
        recorded = json.loads(life.run.folder.text(ended_file(1)))
        neighbour = StreamId("other", STATE_DIR)
        keep(life, neighbour, replace(spec_of_user("etl"), name="other"), "etl")
        with life.hdfs.as_user("etl"):
            life.hdfs.make_folder(neighbour.folder, "755")
            recorded["ends"][-1]["at"] = at
            life.hdfs.write(f"{neighbour.folder}/{ended_file(1)}", json.dumps(recorded))
        life.yarn.end("application_1_0002", FAILED, CODE)
        assert life.reconcile(Mode.ENSURE).phase is not None
        assert past_ends(life.run.folder, life.run.folder.names())[-1].generation == 2

    def test_a_neighbour_costs_only_itself(self, life: Life) -> None:
        life.begin()
        neighbour = StreamId("other", STATE_DIR)
        with life.hdfs.as_user("etl"):
            life.hdfs.make_folder(neighbour.folder, "755")

        def broken(_: str, path: str) -> None:
            if path.startswith(neighbour.folder):
                raise OverflowError("date value out of range")

        life.hdfs.at_request = broken
        life.yarn.end(FIRST, FAILED, CODE)
        assert life.reconcile(Mode.ENSURE).generation == 2

    @pytest.mark.parametrize(
        "odd",
        [
            {"at": "2026-11-28T03:00:00"},
            {"claimed": "0001-01-01T00:00:00Z"},
            {"lasted": "P999999999D"},
            {"lasted": "-P999999999D"},
        ],
    )
    def test_of_an_end_whose_times_nobody_can_reckon_with_it_is_known_that_it_was(
        self, life: Life, odd: dict[str, str]
    ) -> None:
        life.begin()
        life.yarn.end(FIRST, FAILED, CODE)
        assert life.reconcile(Mode.ENSURE).generation == 2
        path = f"{life.run.id.folder}/{ended_file(1)}"
        recorded = json.loads(life.hdfs.read(path))
        recorded["ends"][-1].update(odd)
        life.hdfs.write(path, json.dumps(recorded), overwrite=True)
        (end,) = past_ends(life.run.folder, life.run.folder.names())
        assert (end.generation, end.kind) == (1, EndKind.UNKNOWN)


@pytest.mark.parametrize(
    "odd",
    [
        {"max_lifetime_seconds": 8.6e13, "renew_interval_seconds": 8.6e13},
        {"max_lifetime_seconds": 1e308},
        {"adopted": FIRST, "adopted_started": "0001-01-01T00:00:00+00:00"},
        {"adopted": FIRST, "adopted_started": "9999-12-31T23:59:59+00:00"},
    ],
)
def test_times_in_a_claim_that_nobody_can_reckon_with_are_not_known(life: Life, odd: dict[str, object]) -> None:
    life.begin()
    path = f"{life.run.id.folder}/{claim_file(1)}"
    life.hdfs.write(path, json.dumps({**json.loads(life.hdfs.read(path)), **odd}), overwrite=True)
    life.use(life.hdfs)
    assert "this look failed" not in life.watch().why
    assert life.reconcile().phase is Phase.RUNNING
    claim = life.run.folder.claim_of(1)
    assert claim.adoption.started is None
    assert (Missing.LIFETIMES in claim.file.missing) is ("max_lifetime_seconds" in odd)


class TestATakenNumber:
    """A stranger's file has the number of the next generation, in a folder that somebody opened."""

    def take(self, life: Life, name: str) -> None:
        life.hdfs.modes[life.run.id.folder] = "777"
        with life.hdfs.as_user("mallory"):
            life.hdfs.write(f"{life.run.id.folder}/{name}", "{}", overwrite=True)

    def test_the_way_back_leads_over_the_gap(self, life: Life) -> None:
        for number, position in ((1, Position(None, -1, -1)), (3, Position("query", 5, 5))):
            draft = ClaimDraft(number, f"nonce{number}", SPEC, WEEK, {SPEC.checkpoints[0]: position}, "")
            life.run.folder.make_claim(draft)
            self.take(life, claim_file(2))
        observation = observe(life.run)
        assert observation.generation == 3
        former = last_that_committed(life.run, observation)
        assert former
        assert former.generation == 1

    def test_what_a_person_accepted_before_it_holds_for_the_one_that_follows(self, life: Life) -> None:
        life.begin()
        life.yarn.end(FIRST)
        accepted, _ = accept_checkpoints(life.run, "as they are")
        self.take(life, f"blocked-{accepted:06d}")
        observation = observe(life.run)
        assert observation.next_generation == accepted + 1
        assert observation.folder.accepted is not None

    def test_what_a_person_accepted_holds_when_it_is_free_again(self, life: Life) -> None:
        life.begin()
        life.yarn.end(FIRST)
        self.take(life, claim_file(2))
        accepted, _ = accept_checkpoints(life.run, "as they are")
        life.hdfs.delete(f"{life.run.id.folder}/{claim_file(2)}")
        assert accepted_marker(3) in life.run.folder.names()
        assert (accepted, observe(life.run).next_generation) == (3, 2)
        assert observe(life.run).folder.accepted is not None
