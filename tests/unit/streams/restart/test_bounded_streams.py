"""A stream of a connection that bounds its declarations: what runs goes on, and nothing else is submitted.

Simulated servers: the stream runs as a user of its own, and the connection's principal is a supervisor.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.airflow_options import AirflowOptions, NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.look.blocked import needed_by_all
from airflow_kstream.supervise.streams.orders.desired import claimed_spec, request_restart, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.ended_lives import BLUE, GREEN, Changing
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER
from tests.simulated.tenants import Tenant

NEEDED = Allow(principals=("etl@EXAMPLE.COM",), local_files=("/etl.keytab", "/jobs/orders.jar"))
FERNET = SecretRef("env:AIRFLOW__CORE__FERNET_KEY")


class Bounded(Tenant):
    """A stream whose connection has this bound, None for none."""

    allow: Allow | None = None

    def session(self, identity: Identity) -> ClusterSession:
        return replace(super().session(identity), cluster=replace(CLUSTER, allow=self.allow))


@pytest.fixture
def tenant(life: Life, served: None) -> Bounded:
    return Bounded(life)


def greedy(tenant: Tenant) -> StreamSpec:
    return replace(tenant.spec, conf={"spark.ssl.keyPassword": FERNET})


def test_what_the_connection_does_not_allow_is_not_submitted_and_named(tenant: Bounded) -> None:
    tenant.allow = replace(NEEDED, principals=())
    with pytest.raises(InvalidInput, match=r'not allow principals: etl@EXAMPLE\.COM.*"principals": ') as refused:
        tenant.reconcile()
    assert "connection simulated" in refused.value.message
    assert tenant.yarn.apps == {}


def test_brokers_that_are_not_allowed_get_no_ticket_and_keep_no_stream_from_running(tenant: Bounded) -> None:
    tenant.allow = replace(NEEDED, brokers=("kafka*.example.com:9092",))
    kafka = KafkaPolicy("kafka1.example.com:9092,evil.example.com:9092")
    tenant.reconcile(replace(tenant.spec, kafka=kafka))
    assert [app.alive for app in tenant.yarn.apps.values()] == [True]
    with pytest.raises(Denied, match=r"connection simulated does not allow brokers: evil\.example\.com:9092\."):
        tenant.acting().session.topic_ends(kafka, {"events": {0: 1}})


def test_a_declaration_that_is_refused_leaves_no_copy_that_would_say_so(tenant: Bounded) -> None:
    tenant.allow = NEEDED
    tenant.reconcile()
    before = tenant.copies
    with pytest.raises(InvalidInput, match="secrets: env:AIRFLOW__CORE__FERNET_KEY"):
        tenant.reconcile(greedy(tenant))
    assert tenant.copies == before


def test_what_runs_is_watched_and_restarted_as_it_was_though_nothing_is_allowed(tenant: Bounded) -> None:
    tenant.reconcile(greedy(tenant))
    tenant.allow = Allow()
    request_restart(tenant.acting(greedy(tenant)), "its horizon")
    assert tenant.reconcile(greedy(tenant)).generation == 2
    assert not tenant.watched().calls_for_action
    known = claimed_spec(tenant.looking().session, tenant.stream)
    assert known.submittable, "whoever has no declaration at hand goes on with it, too"
    assert known.spec == greedy(tenant)


def test_an_edit_that_asks_for_more_is_refused_and_the_one_that_runs_is_not_touched(tenant: Bounded) -> None:
    tenant.reconcile()
    tenant.allow = Allow()
    more = replace(greedy(tenant), arguments=("--fast",))
    with pytest.raises(InvalidInput) as refused:
        tenant.reconcile(more)
    assert "env:AIRFLOW__CORE__FERNET_KEY" in refused.value.message
    assert "etl@EXAMPLE.COM" not in refused.value.message
    assert tenant.watched().lives
    assert tenant.reconcile(replace(tenant.spec, arguments=("--fast",))).phase is Phase.RUNNING


def test_the_first_step_is_not_shown_of_what_is_refused(tenant: Bounded) -> None:
    tenant.allow = Allow()
    with pytest.raises(InvalidInput, match="does not allow"):
        Reconciler(tenant.acting()).plan()


def test_a_person_can_stop_what_is_not_allowed(tenant: Bounded) -> None:
    tenant.reconcile(greedy(tenant))
    tenant.allow = Allow()
    run = tenant.acting(replace(greedy(tenant), credentials=tenant.spec.credentials))
    set_desired(run, DesiredState.STOPPED, "by hand")
    report = Reconciler(run, tell=tenant.lines.append, may_submit=False).run(Mode.WATCH)
    assert report.phase is Phase.STOPPED
    assert [app.alive for app in tenant.yarn.apps.values()] == [False]


def test_no_adopted_job_brings_along_what_is_not_allowed(tenant: Bounded, life: Life) -> None:
    tenant.allow = NEEDED
    job = life.yarn.start(frozenset({"by-hand"}), "etl")
    with pytest.raises(InvalidInput, match="FERNET_KEY"):
        adopt(tenant.acting(greedy(tenant)), job.id)
    assert tenant.copies == []
    assert adopt(tenant.acting(), job.id).generation == 1


def test_a_notifier_that_is_not_allowed_keeps_no_stream_from_running(tenant: Bounded) -> None:
    tenant.allow = NEEDED
    options = AirflowOptions(callbacks={"on_failure": NotifyPolicy("c.D")})
    assert tenant.reconcile(replace(tenant.spec, notify=NotifyPolicy("a.B"), airflow=options)).generation == 1


class TestOwnWords:
    """A stream that runs as the connection's own principal, without a copy of its declaration."""

    @pytest.fixture
    def tenant(self, life: Life, served: None) -> Bounded:
        return Bounded(life, "streamer")

    def test_a_claim_that_nobody_kept_brings_nothing_along(self, tenant: Bounded) -> None:
        tenant.reconcile(greedy(tenant))
        for path in tenant.copies:
            tenant.hdfs.delete(path)
        assert claimed_spec(tenant.looking().session, tenant.stream).submittable
        tenant.allow = Allow(local_files=("/jobs/",))
        assert not claimed_spec(tenant.looking().session, tenant.stream).submittable
        tenant.allow = Allow(local_files=("/jobs/",), secrets=("env:AIRFLOW__*",))
        assert claimed_spec(tenant.looking().session, tenant.stream).submittable


def test_a_former_declaration_brings_back_nothing_that_is_not_allowed(life: Life, served: None) -> None:
    stream = Changing(life)
    stream.declared = replace(BLUE, deploy=Deploy(files=("/etc/airflow.cfg",)))
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    stream.declared = GREEN
    assert stream.reconcile().generation == 2
    cluster = replace(CLUSTER, allow=Allow(local_files=("/jobs/",)))
    life.run = replace(life.run, session=replace(life.run.session, cluster=cluster))
    stream.end()
    assert stream.follow().generation == 3
    assert stream.arguments == [(), GREEN.arguments, GREEN.arguments]
    assert any("does not allow local_files: /etc/airflow.cfg" in line for line in stream.lines)


def test_the_present_streams_tell_exactly_what_their_connection_has_to_allow(tenant: Bounded) -> None:
    tenant.reconcile(greedy(tenant))
    session = tenant.looking().session
    needed = needed_by_all(newest_claims(session), session.cluster)
    assert needed == replace(NEEDED, secrets=(str(FERNET),))
    tenant.allow = needed
    assert tenant.reconcile(replace(greedy(tenant), credentials=TicketCredentials("etl@EXAMPLE.COM", "/etl.keytab")))


def test_a_claim_that_nobody_kept_becomes_no_line_of_the_connection(tenant: Bounded) -> None:
    tenant.reconcile(greedy(tenant))
    for path in tenant.copies:
        tenant.hdfs.delete(path)
    session = tenant.looking().session
    assert needed_by_all(newest_claims(session), session.cluster) == Allow()
