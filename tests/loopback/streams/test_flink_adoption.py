"""A running Flink application is adopted to be watched: its JobManager says what it runs, and where that writes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.model.errors import Conflict, Unavailable
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.leases.open_file import FileHistory, FileState, OpenFile
from airflow_kstream.model.streams.deploy import Savepoints
from airflow_kstream.model.streams.flink_job import APPLICATION_TYPE
from airflow_kstream.model.streams.stream import FlinkStreamSpec, TicketCredentials
from airflow_kstream.supervise.doctor.stream_facts import StreamExaminer, flink_conf_of
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt, plan_adoption
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, SimYarn
from tests.simulated.strange_servers import Answer, StrangeServer, said, serving
from tests.simulated.yarn_logs import ID, NOT_ALLOWED, page

RECORDED = json.loads((Path(__file__).parents[1] / "clients/flink_answers.json").read_text())
JOB = "00000000000000000000000000000abc"
# The newest that the JobManager of each release had completed.
NEWEST = {"1.20.3": 15, "2.1.1": 13}
ORDERS = FlinkStreamSpec("orders", TicketCredentials(), "hdfs:///apps/orders.jar", ("/checkpoints",))
CHECKPOINTS, SETTINGS = f"/jobs/{JOB}/checkpoints", f"/jobs/{JOB}/checkpoints/config"
Answers = dict[str, Any]


@dataclass
class Adopter:
    """A person who adopts `application` as the declared stream."""

    life: Life
    server: StrangeServer
    answers: Answers
    application: str

    @property
    def run(self) -> StreamRun:
        # The recorded JobManager's filesystem.
        cluster = replace(CLUSTER, default_fs="hdfs://kstream")
        return replace(
            self.life.run, session=replace(self.life.run.session, cluster=cluster), spec=ORDERS, engine=FlinkEngine()
        )

    def shows(self, path: str, body: Any) -> None:
        self.server.script[f"/proxy/{self.application}{path}"] = body if isinstance(body, Answer) else said(body)

    def changes(self, path: str, change: Callable[[Any], object]) -> None:
        """Let a page be the recorded one but for this."""
        body = copy.deepcopy(self.answers[path])
        change(body)
        self.shows(path, body)

    def is_of_type(self, name: str) -> None:
        apps = self.life.yarn.apps
        apps[self.application] = replace(apps[self.application], type=name)


@pytest.fixture(params=RECORDED)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def adopter(life: Life, release: str) -> Iterator[Adopter]:
    with serving({}) as server:
        yarn = SimYarn(life.clock, address=server.address)
        life.use(life.hdfs, yarn=yarn)
        person = Adopter(life, server, RECORDED[release], yarn.start(frozenset({"by-hand"})).id)
        person.is_of_type("Apache Flink")
        for path, body in person.answers.items():
            person.shows(path, body)
        yield person


def test_the_claim_keeps_the_job_that_its_jobmanager_names(adopter: Adopter, release: str) -> None:
    told: list[str] = []
    claim = adopt(adopter.run, adopter.application, tell=told.append)
    assert claim.adoption.job == JOB
    assert told == [f"job {JOB} writes /checkpoints/{JOB}/chk-{NEWEST[release]}"]
    folder = StreamFolder(adopter.run.session, adopter.run.id)
    kept = folder.claim(folder.names())
    assert kept is not None
    assert kept.adoption == claim.adoption
    assert adopter.life.yarn.apps[adopter.application].alive


def test_the_pace_that_stands_in_its_code_is_known_while_its_jobmanager_is_away(adopter: Adopter) -> None:
    adopter.changes(SETTINGS, lambda body: body.update(interval=45 * 60_000, timeout=60 * 60_000))
    claim = adopt(adopter.run, adopter.application)
    adopter.server.script.clear()
    app = adopter.life.yarn.apps[adopter.application]
    (point,) = FlinkEngine().progress(adopter.run.session, ORDERS, Newest(claim, app))
    assert point.clock is not None
    assert (point.clock.interval, point.clock.limit) == (timedelta(minutes=45), timedelta(hours=2))


def test_an_adoption_only_reads(adopter: Adopter) -> None:
    adopt(adopter.run, adopter.application)
    assert {request.partition(" ")[0] for request in adopter.server.requests} == {"GET"}


def test_an_adoption_tells_that_checkpoints_do_not_survive_the_job(adopter: Adopter) -> None:
    adopter.changes(SETTINGS, lambda body: body["externalization"].update(delete_on_cancellation=True))
    told: list[str] = []
    adopt(adopter.run, adopter.application, tell=told.append)
    assert "its checkpoints do not survive it" in told[-1]
    assert "its checkpoints do not survive it" not in " ".join(told[:-1])


def no_jobs(jobs: Any) -> None:
    jobs["jobs"].clear()


def two_jobs(jobs: Any) -> None:
    jobs["jobs"].append({**jobs["jobs"][0], "jid": "f" * 32})


def elsewhere(path: str | None) -> Callable[[Any], object]:
    return lambda body: body["latest"]["completed"].update(external_path=path)


@pytest.mark.parametrize(
    ("page", "change", "why"),
    [
        ("/jobs/overview", no_jobs, "it has 0 jobs; a stream is an application with one"),
        ("/jobs/overview", two_jobs, f"it has 2 jobs ({JOB}, {'f' * 32})"),
        (f"/jobs/{JOB}", lambda body: body.update(state="FINISHED"), f"its job {JOB} is FINISHED"),
        (SETTINGS, lambda body: body.update(interval=2**63 - 1), "its job makes no checkpoints by itself"),
        (
            CHECKPOINTS,
            elsewhere(f"hdfs://kstream/other/{JOB}/chk-15"),
            f"checkpoint is hdfs://kstream/other/{JOB}/chk-15",
        ),
        (CHECKPOINTS, elsewhere(f"hdfs://other/checkpoints/{JOB}/chk-15"), "checkpoint is hdfs://other/checkpoints/"),
        (
            CHECKPOINTS,
            elsewhere("hdfs://kstream/checkpoints/chk-15"),
            "checkpoint is hdfs://kstream/checkpoints/chk-15",
        ),
        (CHECKPOINTS, elsewhere(f"file:/checkpoints/{JOB}/chk-15"), "checkpoint is file:/checkpoints/"),
        (CHECKPOINTS, elsewhere("<checkpoint-not-externally-addressable>"), "checkpoint is the JobManager's memory"),
        (CHECKPOINTS, lambda body: body["latest"].update(completed=None), "has completed no checkpoint yet"),
    ],
)
def test_a_job_that_is_not_the_declared_one_is_refused_before_anything_is_written(
    adopter: Adopter, page: str, change: Callable[[Any], object], why: str
) -> None:
    adopter.changes(page, change)
    before = dict(adopter.life.hdfs.files)
    for refused in (adopt, plan_adoption):
        with pytest.raises(Conflict) as refusal:
            refused(adopter.run, adopter.application)
        assert why in refusal.value.message
    assert adopter.life.hdfs.files == before


def test_a_job_without_a_page_of_checkpoints_makes_none(adopter: Adopter) -> None:
    """Flink answers 404 with JSON for a job without checkpointing."""
    adopter.shows(SETTINGS, said({"errors": ["Checkpointing is not enabled for this job"]}, 404))
    with pytest.raises(Conflict, match="its job makes no checkpoints by itself"):
        adopt(adopter.run, adopter.application)


def test_a_job_that_initialises_is_asked_again_later(adopter: Adopter) -> None:
    adopter.shows(CHECKPOINTS, said({"errors": ["Job is initializing"]}, 500))
    with pytest.raises(Unavailable) as refusal:
        adopt(adopter.run, adopter.application)
    assert refusal.value.retryable


def test_an_application_of_another_engine_is_refused_by_what_yarn_says(adopter: Adopter) -> None:
    adopter.is_of_type("SPARK")
    with pytest.raises(Conflict, match="is of type SPARK, and orders declares engine flink, of type Apache Flink"):
        adopt(adopter.run, adopter.application)
    assert adopter.server.requests == []
    spark = replace(adopter.life.yarn.apps[adopter.application], type="Apache Flink")
    with pytest.raises(Conflict, match="is of type Apache Flink, and orders declares engine spark, of type SPARK"):
        SparkEngine().adopted(adopter.run.session, SPEC, spark)


def test_a_spark_application_is_of_the_type_that_its_declaration_says(adopter: Adopter) -> None:
    spec = replace(SPEC, conf={"spark.yarn.applicationType": "ours"})
    ours = replace(adopter.life.yarn.apps[adopter.application], type="ours")
    assert SparkEngine().adopted(adopter.run.session, spec, ours).job is None


def test_the_next_job_is_adopted_once_the_first_has_ended(adopter: Adopter) -> None:
    adopt(adopter.run, adopter.application)
    adopter.life.yarn.end(adopter.application)
    adopter.application = adopter.life.yarn.start(frozenset()).id
    for path, body in adopter.answers.items():
        adopter.shows(path, body)
    second = adopt(adopter.run, adopter.application)
    assert (second.generation, second.adoption.application) == (2, adopter.application)


PART = "/data/orders/2026-05-01--12/.part-0-3.inprogress.6f1a"
WITH_OUTPUTS = replace(ORDERS, outputs=("/data/orders",))
# The recorded jobs had restarted from a savepoint or checkpoint of this number.
RESTORED = {name: answers[CHECKPOINTS]["latest"]["restored"] for name, answers in RECORDED.items()}


def open_file(adopter: Adopter, since: datetime, path: str = PART) -> FileHistory:
    """Return the history of a part file that has been seen to stand still since then, and is still open."""
    state = FileState(path, 1, "streamer", since, is_open=True, length=10, visible_length=10)
    return FileHistory.begin(OpenFile(path, 1, "DFSClient_NONMAPREDUCE_1_2", "node7"), state, since)


def completes(adopter: Adopter, *numbers: int) -> None:
    """Let these checkpoints be the retained ones, of those that the JobManager remembers."""
    for number in numbers:
        adopter.life.hdfs.write(f"/checkpoints/{JOB}/chk-{number}/_metadata", "state")
    history = [{"id": number, "status": "COMPLETED", "trigger_timestamp": 0} for number in numbers]
    adopter.changes(CHECKPOINTS, lambda body: body.update(history=history))


@pytest.fixture
def restarted(adopter: Adopter, release: str) -> tuple[Adopter, datetime]:
    """An adopted job that declares its outputs, and when it restarted last inside; two checkpoints came since."""
    adopt(replace(adopter.run, spec=WITH_OUTPUTS), adopter.application)
    restored = RESTORED[release]
    completes(adopter, restored["id"] + 1, restored["id"] + 2)
    return adopter, datetime.fromtimestamp(restored["restore_timestamp"] / 1000, UTC)


def test_a_part_file_below_its_outputs_is_the_streams(restarted: tuple[Adopter, datetime]) -> None:
    adopter, _ = restarted
    of = Attributions(adopter.run.session).of(open_file(adopter, adopter.life.clock.now()))
    assert (of.stream, of.application, of.finished) == ("orders", adopter.application, False)
    assert of.how == "a part file below its outputs"
    visible = open_file(adopter, adopter.life.clock.now(), "/data/orders/2026-05-01--12/part-0-3")
    assert Attributions(adopter.run.session).of(visible).stream is None


@pytest.mark.parametrize(("before", "given_up"), [(timedelta(minutes=6), True), (timedelta(minutes=4), False)])
def test_a_file_that_stopped_before_the_jobs_restart_is_given_up(
    restarted: tuple[Adopter, datetime], before: timedelta, given_up: bool
) -> None:
    adopter, restart = restarted
    assert Attributions(adopter.run.session).has_given_up(open_file(adopter, restart - before)) is given_up


@pytest.mark.parametrize(
    "older", [f"{JOB}/chk-1/_metadata", f"{'e' * 32}/chk-1/_metadata", "savepoint-abc-1/_metadata"]
)
def test_no_file_is_given_up_while_an_older_checkpoint_is_retained(
    restarted: tuple[Adopter, datetime], older: str
) -> None:
    adopter, restart = restarted
    adopter.life.hdfs.write(f"/checkpoints/{older}", "state")
    assert not Attributions(adopter.run.session).has_given_up(open_file(adopter, restart - timedelta(hours=1)))


@pytest.mark.parametrize("place", ["", f"{JOB}/"])
@pytest.mark.parametrize(("beside", "given_up"), [(-1, False), (4, False), (6, True)])
def test_no_file_is_given_up_while_a_savepoint_elsewhere_is_older(
    restarted: tuple[Adopter, datetime], place: str, beside: int, given_up: bool
) -> None:
    """By the minutes beside the restart. In the job's own folder, a younger one hides it from the folder's age."""
    adopter, restart = restarted
    savepoints = Savepoints(folder="/saved")
    adopter.life.hdfs.delete(adopter.run.id.folder, recursive=True)
    adopt(replace(adopter.run, spec=replace(WITH_OUTPUTS, savepoints=savepoints)), adopter.application)
    for name, minutes in (("savepoint-a", beside), ("savepoint-b", 60)):
        at = restart + timedelta(minutes=minutes)
        adopter.life.hdfs.files[f"/saved/{place}{name}/_metadata"] = ("state", at)
    assert Attributions(adopter.run.session).has_given_up(open_file(adopter, restart - timedelta(hours=1))) is given_up


def test_a_savepoint_since_the_restart_is_no_checkpoint(restarted: tuple[Adopter, datetime], release: str) -> None:
    adopter, restart = restarted
    first = RESTORED[release]["id"] + 1
    history = [
        {"id": first + more, "status": "COMPLETED", "trigger_timestamp": 0, "is_savepoint": more > 0} for more in (0, 1)
    ]
    adopter.changes(CHECKPOINTS, lambda body: body.update(history=history))
    assert not Attributions(adopter.run.session).has_given_up(open_file(adopter, restart - timedelta(hours=1)))


def test_no_file_is_given_up_by_a_job_whose_jobmanager_does_not_answer(restarted: tuple[Adopter, datetime]) -> None:
    adopter, restart = restarted
    adopter.shows(CHECKPOINTS, Answer(503, b"", "text/plain"))
    assert not Attributions(adopter.run.session).has_given_up(open_file(adopter, restart - timedelta(hours=1)))


def test_the_doctor_reads_what_a_jobmanager_shows_of_its_configuration(adopter: Adopter) -> None:
    adopter.shows("/jobmanager/config", [{"key": "s3.secret-key", "value": "******"}])
    adopter.changes(SETTINGS, lambda body: body["externalization"].update(delete_on_cancellation=True))
    claim = adopt(adopter.run, adopter.application)
    app = adopter.life.yarn.apps[adopter.application]
    shown = flink_conf_of(adopter.run.session, app, claim.adoption.job, asks_nodes=True)
    assert (shown.conf, shown.survives) == ({"s3.secret-key": "******"}, False)
    assert shown.conf_from == f"the JobManager of {adopter.application}"


def test_the_doctor_examines_a_job_that_nobody_adopted_as_flinks(adopter: Adopter) -> None:
    keytab = [{"key": "security.kerberos.login.keytab", "value": "/containers/krb5.keytab"}]
    adopter.shows("/jobmanager/config", keytab)
    adopter.changes(SETTINGS, lambda body: body["externalization"].update(delete_on_cancellation=True))
    app = replace(adopter.life.yarn.apps[adopter.application], type=APPLICATION_TYPE)
    examiner = StreamExaminer(adopter.run.session, NotChecked("a client", ""), (), {}, datetime.now(UTC))
    facts = examiner.application(app)
    assert (facts.job.engine, facts.job.survives, facts.credentials.renews_itself) == ("flink", False, True)
    adopter.shows("/jobmanager/config", [])
    assert examiner.application(app).credentials.tokens_end is not None


def test_the_doctor_concludes_nothing_of_a_jobmanager_that_does_not_answer(adopter: Adopter) -> None:
    claim = adopt(adopter.run, adopter.application)
    adopter.server.script.clear()
    for app in (adopter.life.yarn.apps[adopter.application], None):
        shown = flink_conf_of(adopter.run.session, app, claim.adoption.job, asks_nodes=True)
        assert isinstance(shown.conf, NotChecked)
        assert isinstance(shown.survives, NotChecked)
        assert isinstance(shown.readable, NotChecked)


@pytest.mark.parametrize(("answer", "readable"), [(page("jobmanager.log", b"x"), True), (NOT_ALLOWED, False)])
def test_the_doctor_asks_a_nodemanager_whether_it_shows_the_log(
    adopter: Adopter, answer: Answer, readable: bool
) -> None:
    claim = adopt(adopter.run, adopter.application)
    link = f"{adopter.server.address}/node/containerlogs/{ID}/bob"
    app = replace(adopter.life.yarn.apps[adopter.application], logs_url=link)
    adopter.server.script[f"/ws/v1/node/containers/{ID}/logs/jobmanager.log"] = answer
    shown = flink_conf_of(adopter.run.session, app, claim.adoption.job, asks_nodes=True)
    assert shown.readable is readable


def test_a_look_asks_no_nodemanager(adopter: Adopter) -> None:
    """It comes often, and one that hangs would hold up what is foretold of all other streams."""
    claim = adopt(adopter.run, adopter.application)
    link = f"{adopter.server.address}/node/containerlogs/{ID}/bob"
    app = replace(adopter.life.yarn.apps[adopter.application], logs_url=link)
    shown = flink_conf_of(adopter.run.session, app, claim.adoption.job, asks_nodes=False)
    assert isinstance(shown.readable, NotChecked)
    assert [request for request in adopter.server.requests if "/node/" in request] == []
