"""Who a stream's user is: proven by a login or by a copy of its declaration, and never computed from a principal.

Simulated servers: who looks and who acts are different users, and both are given names by rules of auth_to_local.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.plan import Phase, Stop
from airflow_kstream.model.streams.stream_policies import KafkaPolicy, RestartPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder import declared_copies
from airflow_kstream.supervise.streams.folder.registry import registered
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.look.watched_claim import watchable
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, ONE_WEEK
from tests.simulated.tenants import Tenant
from tests.simulated.values import changed

CLAIMED = datetime(2026, 3, 1, tzinfo=UTC)
FIRST, SECOND = "application_1_0001", "application_1_0002"


@pytest.fixture
def tenant(life: Life, served: None) -> Tenant:
    return Tenant(life)


@pytest.fixture
def opened(tenant: Tenant) -> Tenant:
    """One that runs, in a folder that somebody opened, and in which a stranger claimed what comes next."""
    tenant.reconcile()
    tenant.hdfs.modes[tenant.stream.folder] = "777"
    with tenant.hdfs.as_user("mallory"):
        tenant.hdfs.write(f"{tenant.stream.folder}/{claim_file(2)}", "evil")
    return tenant


def forget_copies(tenant: Tenant) -> None:
    for path in tenant.copies:
        tenant.hdfs.delete(path)


def test_a_refusal_to_make_a_folder_tells_its_way_out(tenant: Tenant) -> None:
    def closed(request: str, path: str) -> None:
        if request == "make":
            raise Denied("etl may not write in /kstream")

    tenant.hdfs.at_request = closed
    with pytest.raises(Denied) as error:
        tenant.reconcile()
    folder = tenant.stream.folder
    assert "etl may not write in /kstream. Way out: add etl to the group of /kstream, or " in str(error.value)
    commands = f"`hdfs dfs -mkdir {folder} && hdfs dfs -chmod 755 {folder} && hdfs dfs -chown etl {folder}`"
    assert commands in str(error.value)
    assert not tenant.life.yarn.apps
    with pytest.raises(Denied, match=r"hdfs dfs -mkdir /kstream/orders\.etl "):
        set_desired(tenant.acting(), DesiredState.STOPPED, "x")


def test_nobody_logs_in_to_brokers_that_a_claim_alone_names(tenant: Tenant) -> None:
    """Who wrote it could pass the supervisor's ticket on to another server of the brokers' host."""
    brokers = KafkaPolicy("evil:9092", service_name="HTTP")
    spec = replace(tenant.spec, kafka=brokers)
    claim = Claim(1, "nonce", CLAIMED, "etl", "fingerprint", spec, {})
    kept = replace(claim, file=replace(claim.file, copied=True))
    declared = {"kafka": {"bootstrap_servers": "own:9092"}}
    assert watchable(tenant.stream, claim, None).kafka == KafkaPolicy()
    assert watchable(tenant.stream, kept, None).kafka == brokers
    assert watchable(tenant.stream, claim, declared).kafka.bootstrap_servers == "own:9092"


class TestProven:
    def test_the_login_of_who_acts_proves_it(self, opened: Tenant) -> None:
        forget_copies(opened)
        authored = opened.acting().folder.authored()
        assert authored.users == {"etl"}
        assert authored.strangers == {claim_file(2): "mallory"}

    @pytest.mark.parametrize("user", ["streamer", "hdfs", "ann"])
    def test_to_all_who_look_a_copy_proves_it(self, opened: Tenant, user: str) -> None:
        authored = opened.looking(user).authored()
        assert authored.users == {"etl"}
        assert authored.strangers == {claim_file(2): "mallory"}
        assert authored.counted == opened.acting().folder.authored().counted

    def test_where_nobody_kept_a_copy_it_is_not_proven_and_nobody_is_called_a_stranger(self, opened: Tenant) -> None:
        forget_copies(opened)
        authored = opened.looking().authored()
        assert (authored.users, dict(authored.strangers)) == (frozenset(), {})
        assert claim_file(1) in authored.counted, "what the folder's owner wrote is shown"
        assert claim_file(2) not in authored.counted
        verdict = opened.watched()
        assert (verdict.generation, verdict.application, verdict.people.unproven) == (1, FIRST, "etl")

    def test_the_login_of_who_only_looks_proves_nothing(self, opened: Tenant) -> None:
        """Who looks is not the stream's user for that: files of one who looks are a stranger's, too."""
        authored = opened.looking("mallory").authored()
        assert authored.strangers == {claim_file(2): "mallory"}


class TestRenamed:
    """By rules of auth_to_local on HDFS alone, on YARN alone, and on both."""

    @pytest.fixture(params=["HDFS", "YARN", "both"])
    def renamed(self, request: pytest.FixtureRequest, tenant: Tenant) -> Tenant:
        if request.param != "YARN":
            tenant.hdfs_names["etl"] = "svc_etl"
        if request.param != "HDFS":
            tenant.yarn_names["etl"] = "svc_etl" if request.param == "both" else "y_etl"
        # The simulated job writes under YARN's name for it, and a real one under HDFS's.
        tenant.hdfs.modes[tenant.spec.checkpoints[0]] = "777"
        return tenant

    def test_it_is_submitted_watched_and_replaced_like_any_other(self, renamed: Tenant) -> None:
        assert renamed.reconcile().generation == 1
        for user in ("streamer", "hdfs", "ann"):
            verdict = renamed.watched(user)
            assert (verdict.application, verdict.people.unproven, dict(verdict.people.strangers_files)) == (
                FIRST,
                "",
                {},
            )
            assert not verdict.calls_for_action
        renamed.life.clock.ahead += 0.8 * ONE_WEEK
        assert isinstance(renamed.watched().step, Stop)
        assert renamed.reconcile().generation == 2
        assert [app.alive for app in renamed.yarn.apps.values()] == [False, True]
        assert renamed.looking().claim_of(2).file.copied

    def test_the_user_who_has_its_principals_first_part_is_a_stranger(self, tenant: Tenant) -> None:
        tenant.hdfs_names["etl"] = "svc_etl"
        tenant.reconcile()
        tenant.hdfs.modes[tenant.stream.folder] = "777"
        with tenant.hdfs.as_user("etl"):
            tenant.hdfs.write(f"{tenant.stream.folder}/{claim_file(2)}", "evil")
        for folder in (tenant.looking(), tenant.acting().folder):
            assert folder.authored().strangers == {claim_file(2): "etl"}


class TestItsOrders:
    def test_its_user_holds_and_starts_it_for_everybody(self, tenant: Tenant) -> None:
        tenant.reconcile()
        set_desired(tenant.acting(), DesiredState.HELD, "not today")
        for user in ("streamer", "hdfs", "ann"):
            assert "held by" in tenant.watched(user).why
        assert tenant.reconcile(mode=Mode.WATCH).phase is Phase.HELD
        set_desired(tenant.acting(), DesiredState.RUNNING, "")
        assert tenant.reconcile(mode=Mode.WATCH).phase is Phase.RUNNING

    def test_an_order_before_the_first_claim_is_the_same_for_everybody(self, tenant: Tenant) -> None:
        """The stream has no folder yet, and its declaration was read."""
        assert declared_copies.keep_copy(tenant.acting()) == ""
        set_desired(tenant.acting(), DesiredState.HELD, "not before Monday")
        for user in ("streamer", "hdfs", "ann"):
            assert "not before Monday" in tenant.watched(user).why
        assert tenant.reconcile().phase is Phase.HELD

    def test_its_user_speaks_on_no_other_stream(self, tenant: Tenant) -> None:
        tenant.reconcile()
        other = Tenant(tenant.life, "billing")
        other.stream = replace(other.stream, name="bills")
        other.spec = replace(other.spec, name="bills", checkpoints=("/data/bills",))
        other.reconcile()
        strange = replace(tenant.acting(), spec=other.spec)
        with pytest.raises(Denied, match="orders of etl don't count here, but those of hdfs, streamer and billing"):
            set_desired(strange, DesiredState.STOPPED, "")
        assert other.watched().why == f"{SECOND} is RUNNING"


class TestAnotherConnection:
    def test_with_another_principal_nothing_starts_or_stops_or_is_forgotten(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tenant.reconcile()
        set_desired(tenant.acting(), DesiredState.HELD, "not today")
        before = {*tenant.hdfs.files}
        tenant.hdfs.write(f"{CLUSTER.state_dir}/supervisors", "airflow2\n")
        verdict = tenant.watched("airflow2")
        assert (verdict.application, verdict.why) == (FIRST, tenant.watched().why)
        run = tenant.acting()
        cluster = changed(CLUSTER, principal="airflow2@EXAMPLE.COM")
        moved = changed(run, cluster=cluster)
        assert declared_copies.keep_copy(moved) == ""
        assert tenant.reconcile(mode=Mode.WATCH).phase is Phase.HELD
        assert {*tenant.hdfs.files} - before == {
            f"{CLUSTER.state_dir}/supervisors",
            tenant.copies[0],
        }, "its own copy of the declaration alone"
        assert tenant.copies[0].startswith(f"{CLUSTER.state_dir}/declared.airflow2/")


class TestHandedOver:
    """The declaration names another user, to whom HDFS's superuser gives the folder with a chown."""

    @pytest.fixture
    def billing(self, tenant: Tenant) -> Tenant:
        """The same stream as another user, whose declaration every test reads after the first one's generation ran."""
        other = Tenant(tenant.life, "billing")
        other.spec = replace(other.spec, restart=RestartPolicy(jitter_ratio=0))
        tenant.reconcile()
        return other

    def hand_over(self, tenant: Tenant) -> None:
        tenant.hdfs.owners[tenant.stream.folder] = "billing"
        for path in tenant.spec.checkpoints:
            for name in [name for name in tenant.hdfs.owners if name.startswith(path)]:
                tenant.hdfs.owners[name] = "billing"

    def test_before_it_is_nothing_follows_and_the_command_is_named(self, tenant: Tenant, billing: Tenant) -> None:
        tenant.yarn.end(FIRST, ApplicationState.FAILED)
        tenant.life.clock.ahead += ONE_WEEK
        with pytest.raises(Denied, match=rf"`hdfs dfs -chown billing {tenant.stream.folder}` \(without -R\)"):
            billing.reconcile()
        assert list(tenant.yarn.apps) == [FIRST]

    def test_the_claims_of_the_former_user_count(self, tenant: Tenant, billing: Tenant) -> None:
        forget_copies(tenant)
        self.hand_over(tenant)
        authored = billing.acting().folder.authored()
        assert (set(authored.users), dict(authored.strangers)) == ({"billing"}, {})
        assert authored.counted[claim_file(1)] == "etl"

    def test_what_runs_is_followed_once_it_is_proven_dead_and_never_beside_it(
        self, tenant: Tenant, billing: Tenant
    ) -> None:
        forget_copies(tenant)
        self.hand_over(tenant)
        assert billing.reconcile(mode=Mode.WATCH).job.application == FIRST
        assert list(tenant.yarn.apps) == [FIRST]
        tenant.yarn.end(FIRST, ApplicationState.FAILED, "an error")
        tenant.life.clock.ahead += ONE_WEEK
        assert billing.reconcile().generation == 2
        assert tenant.yarn.apps[SECOND].user == "billing"
        for user in ("streamer", "ann"):
            assert (billing.watched(user).application, dict(billing.watched(user).people.strangers_files)) == (
                SECOND,
                {},
            )

    def test_who_has_watched_it_for_weeks_believes_the_new_user_at_once(self, tenant: Tenant, billing: Tenant) -> None:
        """The watcher has looked in vain for billing among its users: as the author of orders on other streams."""
        with tenant.hdfs.as_user("billing"):
            tenant.hdfs.make_folder(f"{CLUSTER.state_dir}/orders.billing", "755")
        session = tenant.looking().session
        watch = Watch(session, lambda spec: tenant.life.engine, again=True)
        name = tenant.stream.name
        assert watch.round([name])[name].application == FIRST
        assert not session.copies.users(tenant.stream, among=["billing"])
        self.hand_over(tenant)
        assert watch.round([name])[name].application == FIRST
        tenant.yarn.end(FIRST, ApplicationState.FAILED, "an error")
        assert billing.reconcile().generation == 2
        seen = watch.round([name])[name]
        assert (seen.application, dict(seen.people.strangers_files)) == (SECOND, {})

    def test_a_hold_of_the_former_user_outlives_the_chown(self, tenant: Tenant, billing: Tenant) -> None:
        set_desired(tenant.acting(), DesiredState.HELD, "hand-over")
        self.hand_over(tenant)
        tenant.yarn.end(FIRST, ApplicationState.FAILED, "an error")
        tenant.life.clock.ahead += ONE_WEEK
        assert billing.reconcile().phase is Phase.HELD
        assert "hand-over" in billing.watched().why

    def test_its_start_holds_after_the_new_users_first_claim_over_an_older_stop(
        self, tenant: Tenant, billing: Tenant
    ) -> None:
        """A stop by a supervisor must not come back when the orders of the former user no longer count."""
        supervisor = replace(tenant.life.run, session=tenant.session(CLUSTER.watcher), declared=False)
        set_desired(supervisor, DesiredState.STOPPED, "an incident")
        set_desired(tenant.acting(), DesiredState.RUNNING, "it is over")
        self.hand_over(tenant)
        tenant.yarn.end(FIRST, ApplicationState.FAILED, "an error")
        tenant.life.clock.ahead += ONE_WEEK
        assert (billing.reconcile().generation, billing.watched().application) == (2, SECOND)
        assert registered(billing.looking().session, billing.stream).desired().author == "billing"

    def test_the_new_users_first_claim_repeats_no_order_that_says_what_holds_anyway(
        self, tenant: Tenant, billing: Tenant
    ) -> None:
        set_desired(tenant.acting(), DesiredState.RUNNING, "it is over")
        self.hand_over(tenant)
        tenant.yarn.end(FIRST, ApplicationState.FAILED, "an error")
        tenant.life.clock.ahead += ONE_WEEK
        assert billing.reconcile().generation == 2
        assert not [path for path in tenant.hdfs.files if "orders.billing" in path]

    def test_in_an_open_folder_the_copies_tell_the_former_user(self, tenant: Tenant, billing: Tenant) -> None:
        self.hand_over(tenant)
        tenant.hdfs.modes[tenant.stream.folder] = "777"
        with tenant.hdfs.as_user("mallory"):
            tenant.hdfs.write(f"{tenant.stream.folder}/{claim_file(2)}", "evil")
        authored = billing.acting().folder.authored()
        assert (set(authored.users), dict(authored.strangers)) == ({"billing", "etl"}, {claim_file(2): "mallory"})

    def test_without_the_chown_the_former_users_claims_are_a_strangers(self, tenant: Tenant, billing: Tenant) -> None:
        forget_copies(tenant)
        tenant.hdfs.modes[tenant.stream.folder] = "777"
        assert billing.acting().folder.authored().strangers[claim_file(1)] == "etl"
