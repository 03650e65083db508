"""Copies of declarations: what a supervisor read is what may be submitted when the declaration is not at hand.

Simulated servers: the stream runs as a user of its own, and who keeps its copies is another one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Denied, Unavailable
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import OnChange, ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import StopPolicy, WatchPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.copies import Copy, copy_name, written_copy
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.folder.declared_copies import COPIES_KEPT, keep_copy
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import declared_at_last, set_desired
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER
from tests.simulated.tenants import Tenant

DECLARED = f"{CLUSTER.state_dir}/declared.streamer"


@pytest.fixture
def tenant(life: Life, served: None) -> Tenant:
    return Tenant(life)


def path_of(tenant: Tenant, spec: StreamSpec, user: str = "etl", folder: str = DECLARED) -> str:
    return f"{folder}/{tenant.stream}/{copy_name(fingerprint(spec), user)}"


def copy_of(tenant: Tenant, spec: StreamSpec) -> Copy | None:
    return tenant.looking().session.copies.of(tenant.stream, fingerprint(spec), "etl")


def newest_claim(tenant: Tenant) -> Claim | None:
    folder = tenant.looking()
    return folder.claim(folder.names())


def kept(tenant: Tenant, spec: StreamSpec) -> str:
    return keep_copy(tenant.acting(spec))


def edited(tenant: Tenant, number: int) -> StreamSpec:
    quick = StopPolicy(silence=timedelta(seconds=1))
    return replace(tenant.spec, arguments=(f"--edit-{number}",), on_change=OnChange.RESTART, stop=quick)


class TestWritten:
    def test_it_is_there_before_anything_of_the_stream_is(self, tenant: Tenant) -> None:
        seen: list[list[str]] = []
        tenant.life.engine.at_submit = lambda: seen.append(tenant.copies)
        claims: list[list[str]] = []

        def at_the_first_file(request: str, path: str) -> None:
            if request == "write" and path.startswith(f"{CLUSTER.state_dir}/{tenant.stream}/"):
                claims.append(tenant.copies)

        tenant.hdfs.at_request = at_the_first_file
        assert tenant.reconcile().generation == 1
        assert seen == [[path_of(tenant, tenant.spec)]]
        assert claims[0] == seen[0]

    def test_the_connections_principal_writes_it_and_nobody_else_can(self, tenant: Tenant) -> None:
        tenant.reconcile()
        path = path_of(tenant, tenant.spec)
        assert tenant.hdfs.owners[path] == "streamer"
        folders = [DECLARED, f"{DECLARED}/{tenant.stream}"]
        assert [tenant.hdfs.modes.get(folder, "755") for folder in folders] == ["755", "755"]

    def test_no_default_acl_lets_others_delete_it(self, tenant: Tenant) -> None:
        folders = {DECLARED, f"{DECLARED}/{tenant.stream}"}
        tenant.hdfs.acls |= folders
        tenant.reconcile()
        assert not tenant.hdfs.acls & folders

    def test_it_tells_the_names_that_hdfs_and_yarn_gave_the_streams_user(self, tenant: Tenant) -> None:
        tenant.reconcile()
        copy = copy_of(tenant, tenant.spec)
        assert copy
        assert (copy.spec, copy.user, copy.yarn_user, copy.author) == (tenant.spec, "etl", "etl", "streamer")

    def test_reading_a_declaration_is_enough_though_nothing_is_submitted(self, tenant: Tenant) -> None:
        tenant.reconcile()
        set_desired(tenant.acting(), DesiredState.HELD, "not today")
        assert tenant.reconcile(edited(tenant, 1)).phase is Phase.HELD
        assert copy_of(tenant, edited(tenant, 1))

    def test_a_look_that_changes_nothing_writes_nothing(self, tenant: Tenant) -> None:
        tenant.reconcile()
        before = {path: tenant.hdfs.files[path] for path in tenant.copies}
        tenant.life.clock.ahead += timedelta(days=1)
        for _ in range(3):
            tenant.reconcile(mode=Mode.WATCH)
        assert {path: tenant.hdfs.files[path] for path in tenant.copies} == before

    def test_changed_policies_replace_it_under_the_same_fingerprint(self, tenant: Tenant) -> None:
        patient = replace(tenant.spec, watch=WatchPolicy(look_every=timedelta(seconds=7)))
        assert fingerprint(patient) == fingerprint(tenant.spec)
        kept(tenant, tenant.spec)
        kept(tenant, patient)
        assert tenant.copies == [path_of(tenant, patient)]
        assert (copy := copy_of(tenant, patient))
        assert copy.spec.watch == patient.watch

    def test_it_only_names_where_a_secret_is_kept(self, tenant: Tenant) -> None:
        spec = replace(tenant.spec, conf={"spark.ssl.keyPassword": SecretRef("env:KSTREAM_KEY")})
        kept(tenant, spec)
        assert "env:KSTREAM_KEY" in tenant.hdfs.files[path_of(tenant, spec)][0]
        assert (copy := copy_of(tenant, spec))
        assert copy.spec.conf == spec.conf

    def test_where_a_stranger_took_the_folders_name_it_lies_in_the_next_one(self, tenant: Tenant) -> None:
        with tenant.hdfs.as_user("mallory"):
            tenant.hdfs.make_folder(DECLARED, "777")
        tenant.reconcile()
        assert tenant.copies == [path_of(tenant, tenant.spec, folder=f"{DECLARED}.2")]
        assert copy_of(tenant, tenant.spec)


class TestKept:
    def test_the_last_ten_stay(self, tenant: Tenant) -> None:
        tenant.reconcile()
        for number in range(1, 15):
            tenant.life.clock.ahead += timedelta(minutes=1)
            assert kept(tenant, edited(tenant, number)) == ""
        stay = {path_of(tenant, edited(tenant, number)) for number in range(5, 15)}
        assert {*tenant.copies} == {path_of(tenant, tenant.spec), *stay}, "and what generation 1 was submitted with"
        assert len(stay) == COPIES_KEPT

    def test_those_of_the_last_ten_generations_stay_however_old(self, tenant: Tenant) -> None:
        specs = [edited(tenant, number) for number in range(12)]
        assert [tenant.reconcile(spec).generation for spec in specs] == list(range(1, 13))
        for number in range(100, 115):
            tenant.life.clock.ahead += timedelta(minutes=1)
            kept(tenant, edited(tenant, number))
        assert [copy_of(tenant, spec) is not None for spec in specs] == [False] * 2 + [True] * 10

    def test_a_claim_that_cannot_be_read_forgets_none_and_keeps_the_new_one(self, tenant: Tenant) -> None:
        tenant.reconcile()
        tenant.hdfs.files[f"{tenant.stream.folder}/gen-000001"] = ("no claim", tenant.hdfs.now())
        for number in range(1, 15):
            tenant.life.clock.ahead += timedelta(minutes=1)
            assert kept(tenant, edited(tenant, number)) == ""
        assert len(tenant.copies) == 15

    def test_a_supervisor_forgets_none_of_another_ones(self, tenant: Tenant) -> None:
        theirs = f"{CLUSTER.state_dir}/declared.hdfs"
        with tenant.hdfs.as_user("hdfs"):
            tenant.hdfs.make_folder(theirs, "755")
            tenant.hdfs.write(path_of(tenant, edited(tenant, 0), folder=theirs), written_copy(edited(tenant, 0), ""))
        for number in range(1, 15):
            tenant.life.clock.ahead += timedelta(minutes=1)
            kept(tenant, edited(tenant, number))
        assert copy_of(tenant, edited(tenant, 0))


class TestBelieved:
    """Whose copies count, and which of them, is the business of tests/unit/clusters/test_copies.py."""

    def test_one_that_may_not_be_read_is_none_and_blocks_nothing(self, tenant: Tenant) -> None:
        """In an encryption zone without its key, its owner is seen, and not its text."""
        tenant.reconcile()

        def refused(request: str, path: str) -> None:
            if request == "read" and "/declared." in path:
                raise Denied("it is encrypted", tried=f"read {path}")

        tenant.hdfs.at_request = refused
        assert copy_of(tenant, tenant.spec) is None
        folder = tenant.looking()
        assert folder.claim(folder.names())
        assert tenant.reconcile(mode=Mode.WATCH).phase is Phase.RUNNING

    def test_one_that_was_repaired_is_found_by_who_looked_at_it_before(self, tenant: Tenant) -> None:
        path = path_of(tenant, tenant.spec)
        tenant.hdfs.make_folder(DECLARED, "755")
        tenant.hdfs.write(path, "{")
        copies = tenant.looking().session.copies
        assert copies.of(tenant.stream, fingerprint(tenant.spec), "etl") is None
        tenant.life.clock.ahead += timedelta(minutes=11)
        tenant.hdfs.write(path, written_copy(tenant.spec, "etl"), overwrite=True)
        assert copies.of(tenant.stream, fingerprint(tenant.spec), "etl")

    def test_it_carries_no_options_of_airflow(self, tenant: Tenant) -> None:
        assert "airflow" not in json.loads(written_copy(tenant.spec, ""))["spec"]

    @pytest.mark.parametrize("credentials", [ProxyUserCredentials("etl"), SPEC.credentials])
    def test_a_claim_finds_it_as_whichever_user_the_stream_runs(
        self, tenant: Tenant, credentials: ProxyUserCredentials | TicketCredentials
    ) -> None:
        """A proxied user, and a stream of the connection's own principal, which is a supervisor."""
        spec = replace(tenant.spec, credentials=credentials, notify=NotifyPolicy("our.Notifier"))
        assert tenant.reconcile(spec).generation == 1
        claim = newest_claim(tenant)
        assert claim
        assert (claim.file.copied, claim.spec) == (True, spec)
        assert tenant.watched().people.notify == NotifyPolicy("our.Notifier")

    def test_a_claim_that_adopts_anothers_job_finds_the_streams_own(self, tenant: Tenant, life: Life) -> None:
        theirs = life.yarn.start(frozenset({"by-hand"}), "alice")
        adopt(tenant.acting(), theirs.id, of_user="alice")
        claim = newest_claim(tenant)
        assert claim
        assert (claim.adoption.application, claim.file.author, claim.file.copied) == (theirs.id, "etl", True)

    def test_one_that_is_kept_later_is_found_by_who_watches_the_generation(self, tenant: Tenant) -> None:
        spec = replace(tenant.spec, notify=NotifyPolicy("our.Notifier"))
        tenant.reconcile(spec)
        (path,) = tenant.copies
        tenant.hdfs.delete(path)
        watch = Watch(tenant.looking().session, lambda _: tenant.life.engine, again=True)
        assert watch.round(["orders"])["orders"].people.notify == NotifyPolicy()
        tenant.hdfs.write(path, written_copy(spec, "etl"))
        tenant.life.clock.ahead += timedelta(minutes=11)
        assert watch.round(["orders"])["orders"].people.notify == NotifyPolicy("our.Notifier")


class TestWithoutOne:
    """What is at hand is submitted all the same, and somebody is told."""

    @pytest.mark.parametrize("error", [Unavailable, Denied])
    def test_a_copy_that_cannot_be_written_stops_no_submission(
        self, tenant: Tenant, error: type[Unavailable | Denied]
    ) -> None:
        def refused(request: str, path: str) -> None:
            if "/declared." in path and request == "write":
                raise error("no space left in the quota")

        tenant.hdfs.at_request = refused
        assert tenant.reconcile().generation == 1
        told = [line for line in tenant.lines if line.startswith("no copy of its declaration is kept: ")]
        assert told
        assert "no space left in the quota" in told[0]

    def test_a_connection_whose_principal_is_no_supervisor_keeps_none(self, tenant: Tenant) -> None:
        tenant.hdfs.owners[CLUSTER.state_dir] = "admin"
        assert tenant.reconcile().generation == 1
        assert tenant.copies == []

    def test_whom_to_tell_comes_from_the_copy_and_not_from_the_claim(self, tenant: Tenant) -> None:
        """A job writes its claims: whom to tell is not its to say."""
        tenant.reconcile()
        claim = newest_claim(tenant)
        assert claim
        assert (claim.spec, claim.file.copied) == (tenant.spec, True)
        for path in tenant.copies:
            tenant.hdfs.delete(path)
        claim = newest_claim(tenant)
        assert claim
        assert isinstance(claim.spec, StreamSpec)
        assert (claim.file.copied, claim.spec.notify) == (False, NotifyPolicy())


class TestWhatComesBack:
    def test_after_an_edit_that_waits_then_a_typo_and_then_a_death_it_is_what_ran(self, tenant: Tenant) -> None:
        """The edit was read, and nobody restarted for it; the typo is not a declaration: the newest claim names one."""
        tenant.reconcile()
        assert tenant.reconcile(replace(tenant.spec, arguments=("--waits",)), Mode.WATCH).generation == 1
        assert len(tenant.copies) == 2
        tenant.yarn.end("application_1_0001", ApplicationState.FAILED, "an error")
        tenant.life.clock.ahead += timedelta(days=1)
        known = declared_at_last(tenant.looking().session, tenant.stream)
        assert (known.spec, known.submittable) == (tenant.spec, True)
        assert tenant.reconcile(known.spec).generation == 2
        assert (claim := newest_claim(tenant))
        assert claim.spec_fingerprint == fingerprint(tenant.spec)
        assert tenant.yarn.apps["application_1_0002"].user == "etl"

    def test_whatever_its_job_wrote_into_the_claim(self, tenant: Tenant) -> None:
        tenant.reconcile()
        path = f"{tenant.stream.folder}/gen-000001"
        evil = replace(tenant.spec, application="/tmp/evil.py", credentials=ProxyUserCredentials("hdfs"))
        text = json.dumps(json.loads(tenant.hdfs.files[path][0]) | {"spec": evil.to_mapping()})
        tenant.hdfs.files[path] = (text, tenant.hdfs.now())
        assert declared_at_last(tenant.looking().session, tenant.stream).spec == tenant.spec
