"""A stop with savepoint on a JobManager's port, and what is not killed where none can be made."""

from __future__ import annotations

import copy
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from airflow_kstream.minicluster.certificates import create_certificates
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.contract import started_marker, stop_marker, stopped_marker
from airflow_kstream.model.streams.deploy import FlinkDeploy, Savepoints
from airflow_kstream.model.streams.flink_contract import resume_file
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Stop
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream import FlinkStreamSpec
from airflow_kstream.policy.streams.flink.flink_submission import savepoints_folder
from airflow_kstream.supervise.streams.flink.flink_stop import FlinkStop
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.orders.desired import start_from
from tests.loopback.streams.test_flink_adoption import RECORDED, SETTINGS
from tests.simulated.flink import FLINK_SPEC, FlinkLife, metadata
from tests.simulated.life import Life
from tests.simulated.served import Quiet, served
from tests.simulated.servers import SimYarn
from tests.simulated.strange_servers import said, serving
from tests.simulated.yarn import WEEK

JOB = "0123456789abcdef" * 2


@dataclass
class JobManager:
    """The port of a JobManager: what it was sent, and what it does then. `failed` is why each stop by its id failed.

    Behind YARN's proxy it is asked at the same address.
    """

    status: int = HTTPStatus.ACCEPTED
    failed: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[str, object]] = field(default_factory=list)
    does: Callable[[], object] = lambda: None
    address: str = ""
    conf: dict[str, str] = field(default_factory=dict)

    def handler(self) -> type[Quiet]:
        job_manager = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                job_manager.sent.append((self.path, json.loads(body)))
                job_manager.does()
                self.send_response(job_manager.status)
                self.end_headers()

            def do_GET(self) -> None:
                if self.path.endswith("/jobmanager/config"):
                    return self._say([{"key": key, "value": value} for key, value in job_manager.conf.items()])
                _, _, asked = self.path.rpartition("/savepoints/")
                why = job_manager.failed.get(asked)
                cause = {"failure-cause": {"class": "java.lang.Exception", "stack-trace": why}} if why else None
                return self._say({"status": {"id": "COMPLETED"}, "operation": cause}, found=bool(why))

            def _say(self, body: object, *, found: bool = True) -> None:
                self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        return Handler


@pytest.fixture
def port() -> Iterator[JobManager]:
    job_manager = JobManager()
    with served(job_manager.handler()) as job_manager.address:
        yield job_manager


@pytest.fixture
def flink(life: Life, port: JobManager) -> FlinkLife:
    flink = FlinkLife(life, replace(FLINK_SPEC, deploy=FlinkDeploy(rest_ports="50100-50200")))
    start_from(life.run, "a new stream", fresh=True)
    life.begin()
    listens(flink, port)
    return flink


def listens(flink: FlinkLife, port: JobManager) -> None:
    app = flink.application
    flink.yarn.apps[app.id] = replace(app, leader=port.address)


def done(life: Life) -> str:
    return "; ".join(action.what for action in life.reconcile().done)


def saves(flink: FlinkLife, number: int) -> None:
    flink.save(number)
    flink.yarn.end(flink.application.id)


def answers(flink: FlinkLife, state: str) -> None:
    """Let the jar in the first generation say this of its stop by marker."""
    said = {"contract": "1", "generation": 1, "application": flink.application.id, "time": "2026-01-01T00:00:00+00:00"}
    said |= {"state": state, "job": flink.job, "trigger": "t", "target": "/t", "savepoint": "", "why": "expired"}
    flink.hdfs.write(f"{flink.life.run.id.folder}/{resume_file(1)}", json.dumps(said))


def test_a_job_is_stopped_on_its_own_port_where_that_is_open(flink: FlinkLife, port: JobManager) -> None:
    flink.complete(1)
    job, port.does = flink.job, lambda: saves(flink, 2)
    saved = f"/flink/orders/savepoints/{job}/savepoint-2"
    flink.life.request_restart()
    assert f"it stopped with savepoint {saved}" in done(flink.life)
    assert port.sent == [
        (
            f"/jobs/{job}/stop",
            {
                "targetDirectory": f"hdfs://simulated/flink/orders/savepoints/{job}",
                "drain": False,
                "formatType": "NATIVE",
                # The job's own: sent twice, it is one stop.
                "triggerId": job,
            },
        )
    ]
    assert f"{flink.life.run.id.folder}/{stopped_marker(1)}" in flink.hdfs.files
    assert flink.claim.start.resume == ResumePoint(saved, 2, made_by=1)


def test_a_port_that_refuses_leaves_the_retained_checkpoint(flink: FlinkLife, port: JobManager) -> None:
    flink.complete(1)
    folder, port.status = flink.folder, HTTPStatus.CONFLICT
    flink.life.request_restart()
    assert "it was killed" in done(flink.life)
    assert flink.engine.resumed[-1] == f"{folder}/chk-1"


@pytest.mark.parametrize(("state", "asked"), [("asked", 0), ("failed", 1)])
def test_the_port_is_asked_only_when_no_stop_by_marker_is_under_way(
    flink: FlinkLife, port: JobManager, state: str, asked: int
) -> None:
    flink.complete(1)
    flink.hdfs.write(f"{flink.life.run.id.folder}/{started_marker(1)}", "")
    answers(flink, state)
    port.status = HTTPStatus.CONFLICT
    flink.life.request_restart()
    assert "it was killed" in done(flink.life)
    assert len(port.sent) == asked


def test_an_application_that_ends_without_a_savepoint_has_not_stopped(flink: FlinkLife, port: JobManager) -> None:
    flink.complete(1)
    folder, app = flink.folder, flink.application.id
    port.does = lambda: flink.yarn.end(app, ApplicationState.FAILED)
    flink.life.request_restart()
    assert "it ended by itself" in done(flink.life)
    assert f"{flink.life.run.id.folder}/{stopped_marker(1)}" not in flink.hdfs.files
    assert flink.engine.resumed[-1] == f"{folder}/chk-1"


def test_a_stop_looks_where_the_job_was_told_to_save(flink: FlinkLife, port: JobManager) -> None:
    """Another folder for savepoints may be the very change for which it is stopped."""
    flink.complete(1)
    saved = f"/flink/orders/savepoints/{flink.job}/savepoint-2"
    before, app, job = flink.spec, flink.application.id, flink.job

    def save() -> None:
        flink.hdfs.write(f"{savepoints_folder(before, job)}/savepoint-2/_metadata", metadata(2))
        flink.yarn.end(app)

    port.does = save
    flink.reopen(replace(flink.spec, savepoints=Savepoints(folder="/flink/moved"), deploy=FlinkDeploy()))
    flink.life.request_restart()
    assert f"it stopped with savepoint {saved}" in done(flink.life)
    assert flink.engine.resumed[-1] == saved


def adopted(flink: FlinkLife, port: JobManager, job: str | None, spec: FlinkStreamSpec | None = None) -> None:
    """Let the newest generation be a job that somebody else submitted."""
    app = flink.yarn.start(frozenset({"theirs"}))
    listens(flink, port)
    draft = ClaimDraft(2, "n", spec or flink.spec, WEEK, {}, "adopted", app.id, flink.hdfs.now(), job)
    flink.life.run.folder.make_claim(draft)
    flink.yarn.end(next(iter(flink.yarn.apps)), ApplicationState.KILLED)


@pytest.mark.parametrize("job", [JOB, None])
def test_a_foreign_job_whose_checkpoints_may_end_with_it_is_left_running(
    flink: FlinkLife, port: JobManager, job: str | None
) -> None:
    """YARN's proxy is none here, so nobody tells whether they survive."""
    adopted(flink, port, job)
    port.status = HTTPStatus.NOT_FOUND
    flink.life.request_restart()
    with pytest.raises(Conflict, match="It is left running"):
        flink.life.reconcile()
    assert flink.application.alive


def test_an_order_that_was_refused_leaves_no_marker_and_is_taken_back(flink: FlinkLife, port: JobManager) -> None:
    adopted(flink, port, JOB)
    port.status = HTTPStatus.NOT_FOUND
    flink.life.request_restart()
    for _ in range(2):
        with pytest.raises(Conflict, match="`kstream streams start orders` takes back an order to stop or restart it"):
            flink.life.reconcile()
        assert stop_marker(2) not in flink.life.run.folder.names()
    flink.life.set_desired(DesiredState.RUNNING)
    assert flink.life.reconcile().phase is Phase.RUNNING
    assert len(port.sent) == 2


@pytest.mark.parametrize("state", ["asked", "failed"])
def test_the_marker_of_a_stop_that_is_under_way_stays(told: FlinkLife, state: str) -> None:
    """The jar in its JobManager makes one savepoint for each marker."""
    told.complete(1)
    told.hdfs.write(f"{told.life.run.id.folder}/{started_marker(1)}", "")
    answers(told, state)
    told.life.set_desired(DesiredState.STOPPED)
    with pytest.raises(Conflict, match="left running"):
        told.life.reconcile()
    left = {stop_marker(1), resume_file(1)} & told.life.run.folder.names()
    assert left == (set() if state == "failed" else {stop_marker(1), resume_file(1)})


def test_a_foreign_job_is_followed_from_the_savepoint_of_its_stop(flink: FlinkLife, port: JobManager) -> None:
    adopted(flink, port, JOB)
    app, saved = flink.application.id, f"/flink/orders/savepoints/{JOB}/savepoint-9"

    def save() -> None:
        flink.save(9, JOB)
        flink.yarn.end(app)

    port.does = save
    flink.life.request_restart()
    flink.life.reconcile()
    assert flink.engine.resumed[-1] == saved


def test_a_freeze_in_a_stop_spares_a_job_whose_checkpoints_may_end_with_it(flink: FlinkLife, port: JobManager) -> None:
    """It may be lifted right after that was asked."""
    adopted(flink, port, JOB)
    step = Stop(2, flink.application.id, "a new jar", preflight=False)
    with pytest.raises(Conflict, match=r"the cluster is frozen\. It is left running"):
        FlinkStop(flink.life.run.session, flink.spec, step, lambda: False).run()


@pytest.fixture
def told(life: Life) -> Iterator[FlinkLife]:
    """A stream whose JobManager answers behind YARN's proxy; its code says that its checkpoints end with it."""
    with serving({}) as server:
        life.use(life.hdfs, yarn=SimYarn(life.clock, address=server.address))
        flink = FlinkLife(life)
        start_from(life.run, "a new stream", fresh=True)
        life.begin()
        settings = copy.deepcopy(RECORDED["1.20.3"][SETTINGS])
        settings["externalization"]["delete_on_cancellation"] = True
        page = f"/proxy/{flink.application.id}/jobs/{flink.job}/checkpoints/config"
        server.script[page] = said(settings)
        yield flink


def test_a_job_whose_code_takes_its_checkpoints_along_is_left_running(told: FlinkLife) -> None:
    told.complete(1)
    told.life.request_restart()
    with pytest.raises(Conflict, match="It is left running"):
        told.life.reconcile()
    assert told.application.alive


def hung(flink: FlinkLife) -> FlinkStop:
    """Return a stop for a checkpoint that hangs, of a generation that completed one and whose jar has started."""
    flink.complete(1)
    flink.life.run.folder.mark(started_marker(1))
    limit = timedelta(minutes=20)
    stall = Stall(1, "n", flink.spec.checkpoints[0], 2, limit, 3 * limit, unit="checkpoint", overdue=True)
    step = Stop(1, flink.application.id, "it hangs", preflight=True, hung=stall)
    return FlinkStop(flink.life.run.session, flink.spec, step, lambda: True)


def test_what_hangs_is_killed_without_a_savepoint_that_it_could_not_make(flink: FlinkLife, port: JobManager) -> None:
    stop, began = hung(flink), flink.hdfs.now()
    assert stop.run() is None
    assert flink.hdfs.now() - began < flink.spec.stop.marker_grace
    assert port.sent == []


def test_what_hangs_is_left_running_if_its_checkpoints_end_with_it(told: FlinkLife) -> None:
    with pytest.raises(Conflict, match="It is left running"):
        hung(told).run()


def test_a_job_that_has_nothing_to_lose_is_killed(told: FlinkLife) -> None:
    told.life.request_restart()
    assert "it was killed" in done(told.life)


def test_a_savepoint_that_fails_is_named_and_tried_once_more(flink: FlinkLife, port: JobManager) -> None:
    """A JobManager begins none again under the id of one that failed. Its port was declared after its adoption."""
    adopted(flink, port, JOB, replace(flink.spec, deploy=FlinkDeploy()))
    app = flink.application.id
    flink.yarn.address = f"http://{port.address}"

    def fail() -> None:
        _, terms = port.sent[-1]
        assert isinstance(terms, dict)
        port.failed[terms["triggerId"]] = "java.lang.Exception: x\n\tat a.B\nCaused by: Permission denied: /flink"

    port.does = fail
    flink.life.request_restart()
    with pytest.raises(Conflict, match=r"Permission denied: /flink\. It is left running"):
        flink.life.reconcile()
    assert flink.application.alive

    def save() -> None:
        flink.save(9, JOB)
        flink.yarn.end(app)

    port.does = save
    flink.life.reconcile()
    first, second = (terms["triggerId"] for _, terms in port.sent if isinstance(terms, dict))
    assert first == JOB != second
    assert flink.engine.resumed[-1] == f"/flink/orders/savepoints/{JOB}/savepoint-9"


@pytest.fixture
def ca(tmp_path: Path, port: JobManager) -> Iterator[str]:
    """The authority of a JobManager whose port speaks TLS: what arrives there in clear is lost."""
    folders = Folders(tmp_path)
    folders.tls.mkdir(parents=True)
    create_certificates(folders, "secret")
    key, certificate, _ = pkcs12.load_key_and_certificates(folders.keystore.read_bytes(), b"secret")
    assert key
    assert certificate
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "server.pem").write_bytes(private + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with served(port.handler(), context) as port.address:
        yield str(folders.ca)


def test_a_port_with_tls_is_believed_by_the_connections_authority(flink: FlinkLife, port: JobManager, ca: str) -> None:
    trusted, tls = replace(flink.life.run.session.cluster, tls=Tls(ca)), {"security.ssl.rest.enabled": "true"}
    flink.reopen(replace(flink.spec, conf={**flink.spec.conf, **tls}))
    flink.die()
    flink.life.set_desired(DesiredState.RUNNING)
    flink.life.begin()
    listens(flink, port)
    step, app = Stop(2, flink.application.id, "a new jar", preflight=False), flink.application.id

    def save() -> None:
        flink.save(7)
        flink.yarn.end(app)

    port.does = save
    for cluster in (flink.life.run.session.cluster, trusted):
        session = replace(flink.life.run.session, cluster=cluster)
        ended = FlinkStop(session, flink.spec, step, lambda: True).run()
        assert (ended is not None) is (cluster is trusted)
    assert len(port.sent) == 1


def test_a_port_that_wants_a_certificate_is_not_asked(flink: FlinkLife, port: JobManager) -> None:
    flink.yarn.address = f"http://{port.address}"
    adopted(flink, port, JOB)
    port.conf = {"security.ssl.rest.enabled": "true", "security.ssl.rest.authentication-enabled": "true"}
    flink.life.request_restart()
    with pytest.raises(Conflict, match="authentication-enabled is set, and kstream has no certificate"):
        flink.life.reconcile()
    assert port.sent == []
