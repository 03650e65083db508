"""What the doctor knows of a stream by its claim, its folder and YARN, and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster_facts import DriverFacts, NotKnown, StreamFacts
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Desired, DesiredState, StreamId
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.stream_facts import StreamExaminer
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from tests.simulated.doctor_facts import driver
from tests.simulated.flink import FLINK_SPEC
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of

DAY = timedelta(days=1)
WEEK = TokenLifetimes(DAY, 7 * DAY)
SPEC = StreamSpec("orders", TicketCredentials(), "/jobs/orders.py", ())
STREAM = StreamId("orders", CLUSTER.state_dir)
NO_CLIENT = NotChecked("a Spark client on this host", "there is none")
STAGING = "/user/streamer/.sparkStaging"


class World:
    """An HDFS and a YARN in memory, with one stream."""

    def __init__(self) -> None:
        self.hdfs = SimHdfs(SimClock())
        self.yarn = SimYarn(self.hdfs.clock)
        self.drivers: dict[str, DriverFacts | NotChecked] = {}

    @property
    def session(self) -> ClusterSession:
        return session_of(self.hdfs, self.yarn)

    def claim(self, spec: StreamSpec, **more: object) -> None:
        draft = ClaimDraft(1, "nonce", spec, WEEK, {}, "", **more)  # type: ignore[arg-type]
        StreamFolder(self.session, STREAM, acting=True).make_claim(draft)

    def start(self) -> Application:
        return self.yarn.start(frozenset(STREAM.tags(1)))

    def facts(self, drivers: Mapping[str, DriverFacts | NotChecked] | None = None) -> StreamFacts:
        session = self.session
        listed = session.yarn.applications("kstream")
        examiner = StreamExaminer(session, NO_CLIENT, listed, drivers or {}, datetime.now(UTC))
        (registered,) = newest_claims(session)
        return examiner.facts(registered)


class NobodyAnswers(SimYarn):
    def active(self) -> str:
        raise Unavailable("no ResourceManager is active")


@pytest.fixture
def world() -> World:
    return World()


def test_a_stream_without_a_keytab_ends_with_the_tokens_of_its_submission(world: World) -> None:
    world.claim(SPEC)
    app = world.start()
    claimed = world.hdfs.status(f"{STREAM.folder}/{claim_file(1)}").modified
    facts = world.facts()
    assert (facts.running, facts.user, facts.supervised) == (app.id, "streamer", True)
    assert facts.credentials.tokens_end == facts.credentials.launch_tokens_end == claimed + 7 * DAY


def test_a_person_s_hold_is_known(world: World) -> None:
    world.claim(SPEC)
    assert not world.facts().held
    hold = Desired(DesiredState.HELD, by="ann", reason="lunch")
    StreamFolder(world.session, STREAM).change_desired(lambda _: hold)
    assert world.facts().held
    assert not world.facts().restarted


def test_one_that_nobody_can_reckon_with_costs_no_other_its_facts(world: World) -> None:
    world.claim(SPEC)
    app = world.start()
    world.yarn.apps[app.id] = replace(app, lifetime_left=timedelta.max)
    running = world.facts().running
    assert isinstance(running, NotChecked)
    assert running.sentence.startswith("the facts of orders could not be asked, because OverflowError")


def test_tokens_that_nobody_renews_end_after_one_renew_interval(world: World) -> None:
    excluded = {"spark.yarn.kerberos.renewal.excludeHadoopFileSystems": CLUSTER.default_fs}
    world.claim(replace(SPEC, conf=excluded))
    world.start()
    facts = world.facts()
    assert facts.credentials.tokens_end == facts.credentials.launch_tokens_end
    assert facts.credentials.tokens_end is not None
    assert facts.credentials.tokens_end < datetime.now(UTC) + 2 * DAY


def test_a_stream_with_a_keytab_has_an_end_of_its_launch_s_tokens_alone(world: World) -> None:
    world.claim(replace(SPEC, credentials=KeytabCredentials("streamer@EXAMPLE.COM")))
    world.start()
    facts = world.facts()
    assert (facts.credentials.renews_itself, facts.credentials.tokens_end) == (True, None)
    assert facts.credentials.launch_tokens_end is not None


def test_its_declaration_counts_until_its_driver_shows_more(world: World) -> None:
    world.claim(replace(SPEC, conf={"spark.speculation": "true"}))
    app = world.start()
    declared = world.facts()
    assert declared.job.conf_from == "its declaration"
    assert (declared.setting("spark.speculation"), declared.setting("spark.yarn.maxAppAttempts")) == ("true", "1")
    with pytest.raises(NotKnown):
        _ = declared.hadoop
    shown = replace(driver(HadoopVersion("3.3.6")), application=app.id, properties={"spark.speculation": "false"})
    facts = world.facts({app.id: shown})
    assert facts.job.conf_from == f"the environment of {app.id}"
    assert (facts.setting("spark.speculation"), facts.hadoop) == ("false", HadoopVersion("3.3.6"))


def test_the_declaration_of_an_adopted_job_proves_nothing_about_it(world: World) -> None:
    app = world.yarn.start(frozenset({"theirs"}))
    world.claim(SPEC, adopted=app.id, adopted_started=app.started)
    refused = NotChecked("its environment", "it answered 403", "spark.ui.view.acls")
    facts = world.facts({app.id: refused})
    assert facts.running == app.id
    assert facts.job.conf == refused


def test_a_missing_staging_folder_and_one_that_was_left_are_two_facts(world: World) -> None:
    world.claim(SPEC)
    ended, running = world.start(), world.start()
    world.yarn.end(ended.id, ApplicationState.KILLED)
    world.hdfs.write(f"{STAGING}/{ended.id}/__spark_conf__.zip", "")
    facts = world.facts()
    assert (facts.running, facts.staging.staged) == (running.id, False)
    assert facts.staging.unused_staging == (f"{STAGING}/{ended.id}",)
    world.hdfs.write(f"{STAGING}/{running.id}/__spark_conf__.zip", "")
    assert world.facts().staging.staged is True


def test_a_proxy_user_and_object_stores_are_read_from_the_declaration(world: World) -> None:
    spec = replace(SPEC, credentials=ProxyUserCredentials("alice"), arguments=("--out", "s3a://lake/orders"))
    world.claim(spec)
    facts = world.facts()
    assert (facts.proxied, facts.job.object_stores, facts.runs) == ("alice", ("s3a",), False)


def test_a_job_in_no_batch_has_no_pause_and_its_checkpoints_are_not_read(world: World) -> None:
    world.yarn = NobodyAnswers(world.hdfs.clock)
    world.claim(FLINK_SPEC)
    world.start()
    asked: list[str] = []
    world.hdfs.at_request = lambda request, path: asked.append(path)
    facts = world.facts()
    assert (facts.job.engine, facts.pause) == ("flink", None)
    assert [path for path in asked if path.startswith(FLINK_SPEC.checkpoints[0])] == []


def test_a_claim_that_can_t_be_read_leaves_its_own_stream_open(world: World) -> None:
    world.claim(SPEC)
    path = f"{STREAM.folder}/{claim_file(1)}"
    world.hdfs.files[path] = ("no JSON", world.hdfs.now())
    facts = world.facts()
    assert isinstance(facts.running, NotChecked)
    with pytest.raises(NotKnown, match="the claim of orders could not be asked"):
        _ = facts.runs
