"""What a ResourceManager does with applications and queues, and the words by which it tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from getpass import getuser
from pathlib import Path

import pytest
import requests

from airflow_kstream.clients.hadoop_conf import rpc_conf
from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.clients.yarn_rpc import ResourceManagerRpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.record import read_site
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.queue import Queue, Size
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.policy.streams.ends.ends import end_of
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.contract.conftest import Living
from tests.live.sleepers import sleeping
from tests.live.streams import await_that, rate_stream
from tests.live.token_makers import access_as, fetch, held, identity

EVERYBODY = "<name>yarn.scheduler.capacity.root.acl_submit_applications</name><value>*</value>"
QUEUE = "yarn.scheduler.capacity.root.default.state"
ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
PATIENCE = timedelta(seconds=60)


def test_what_nobody_submitted_is_not_found_by_id_and_not_listed_by_tag(session: ClusterSession) -> None:
    with pytest.raises(NotFound):
        session.yarn.application("application_1_0001")
    assert session.yarn.applications("contract-nobody") == ()


def test_tags_are_lower_cased_and_matched_whole(session: ClusterSession) -> None:
    tag = "contract-whole-1"
    with sleeping(session, "tagged", ("Contract-Whole-1", "contract-whole-12")) as app:
        assert session.yarn.application(app).tags == {tag, "contract-whole-12"}
        assert [found.id for found in session.yarn.applications(tag)] == [app]
        assert session.yarn.applications("contract-whole") == ()


def test_one_that_has_registered_with_nobody_is_accepted_and_has_a_start(session: ClusterSession) -> None:
    with sleeping(session, "unregistered") as app:
        seen = session.yarn.application(app)
        assert (seen.state, seen.final_status, seen.user) == (ApplicationState.ACCEPTED, "UNDEFINED", getuser())
        assert (seen.started is not None, seen.finished, seen.lifetime_left) == (True, None, None)


def test_its_attempt_names_its_container_and_the_node(session: ClusterSession) -> None:
    with sleeping(session, "placed") as app:
        container = session.yarn.am_container(app)
        (place,) = session.yarn.driver_places(app)
        assert session.yarn.live_places(app) == {place}
        assert session.yarn.node(place.node).state == "RUNNING"
        assert session.yarn.any_node() == place
        link = LoggedContainer.of_link(session.yarn.application(app).logs_url)
        assert link == LoggedContainer(container or "", f"http://{place.web}", getuser())
        assert session.yarn.live_containers(app) == (link,)
    assert session.yarn.driver_places(app) == {place}
    assert session.yarn.live_containers(app) == ()


def test_a_node_that_is_not_known_is_not_found(session: ClusterSession) -> None:
    with pytest.raises(NotFound):
        session.yarn.node("nowhere:1")


def test_what_lives_of_a_user_is_listed_whatever_its_tags(session: ClusterSession) -> None:
    with sleeping(session, "of-user") as app:
        assert app in [found.id for found in session.yarn.running_as(getuser())]
        assert session.yarn.running_as("nobody") == ()
    assert app not in [found.id for found in session.yarn.running_as(getuser())]


def test_a_signalled_driver_is_followed_by_another_attempt_if_one_is_left(session: ClusterSession) -> None:
    """A graceful stop waits no longer then, so that the kill comes before that one works."""
    spec = rate_stream("twice", TicketCredentials(), checkpoints=())
    with sleeping(session, "twice", (), **{"max-app-attempts": 2}) as app:
        first = session.yarn.am_container(app)
        step = Stop(1, app, "a test", preflight=False)
        assert SparkEngine().stop_gracefully(session, spec, step, lambda: True) is None
        assert session.yarn.am_container(app) != first
        assert session.yarn.application(app).alive


def test_its_rpc_takes_the_commands_that_its_rest_takes(session: ClusterSession, minicluster: Minicluster) -> None:
    """It is the way where its web server wants no proof of who asks."""
    assert session.yarn.way_to_stop() == "over REST"
    conf = rpc_conf(session.cluster)
    stranger = identity(minicluster, "watcher")
    with sleeping(session, "by-rpc") as app, closing(ResourceManagerRpc(conf, session.identity)) as rpc:
        rpc.prove()
        with closing(ResourceManagerRpc(conf, stranger)) as of_another, pytest.raises(Denied, match="cannot perform"):
            of_another.kill(app, "not mine")
        rpc.shut_down(session.yarn.am_container(app) or "")
        rpc.kill(app, "over its RPC")
        ended = session.yarn.kill(app, "too late", PATIENCE)
        assert ended.state is ApplicationState.KILLED
        with pytest.raises(NotFound):
            rpc.kill("application_1_0001", "nobody's")


def test_a_killed_application_keeps_the_words_and_the_name_of_its_killer(session: ClusterSession) -> None:
    with sleeping(session, "killed") as app:
        ended = session.yarn.kill(app, "words of a killer", PATIENCE)
        assert session.yarn.kill(app, "too late", PATIENCE) == ended
    assert (ended.state, ended.final_status) == (ApplicationState.KILLED, "KILLED")
    assert ended.finished is not None
    assert "words of a killer" in ended.diagnostics
    assert end_of(ended.diagnostics).killed_by == getuser()


def test_another_user_sees_no_times_and_kills_nothing(minicluster: Minicluster, session: ClusterSession) -> None:
    with sleeping(session, "of-another", ("contract-of-another",)) as app, access_as(minicluster, "watcher") as other:
        with pytest.raises(Denied):
            other.yarn.kill(app, "not ours", PATIENCE)
        (seen,) = other.yarn.applications("contract-of-another")
        assert (seen.id, seen.alive, seen.started) == (app, True, None)


def test_who_administers_the_queue_sees_what_another_user_runs_and_kills_it(
    minicluster: Minicluster, session: ClusterSession
) -> None:
    with sleeping(session, "looked-after") as app, access_as(minicluster, "supervisor") as other:
        assert other.yarn.application(app).started is not None
        ended = other.yarn.kill(app, "its supervisor's words", PATIENCE)
    assert (ended.user, end_of(ended.diagnostics).killed_by) == (getuser(), "supervisor")


def test_a_signalled_container_ends_with_143(session: ClusterSession) -> None:
    with sleeping(session, "signalled", command="exec sleep 600") as app:
        assert session.yarn.signal_driver(app) == session.yarn.am_container(app)
        await_that(lambda: not session.yarn.application(app).alive, "its container ends")
        ended = session.yarn.application(app)
    assert ended.state is ApplicationState.FAILED
    assert "exitCode: 143" in ended.diagnostics


def test_yarn_tells_a_lifetime_limit_and_keeps_it(session: ClusterSession) -> None:
    with sleeping(session, "limited") as app:
        ends = datetime.now(UTC) + timedelta(seconds=5)
        limit = {"timeout": {"type": "LIFETIME", "expiryTime": f"{ends:%Y-%m-%dT%H:%M:%S}.000+0000"}}
        with closing(kerberos_session(session.identity, session.cluster.tls)) as http:
            url = f"{session.yarn.active()}/ws/v1/cluster/apps/{app}/timeout"
            http.put(url, json=limit, headers={"X-XSRF-Header": "test"}, timeout=60).raise_for_status()
        left = session.yarn.application(app).lifetime_left
        assert left is not None
        assert timedelta() <= left <= timedelta(seconds=5)
        await_that(lambda: not session.yarn.application(app).alive, "its lifetime is over")
        assert end_of(session.yarn.application(app).diagnostics).kind is EndKind.LIFETIME


def test_of_a_job_that_failed_yarn_knows_an_exit_status(failed: Application) -> None:
    """Its driver has told YARN of the failure, so to YARN it is finished."""
    assert (failed.state, failed.final_status, failed.succeeded) == (ApplicationState.FINISHED, "FAILED", False)
    assert "User application exited with status 1" in failed.diagnostics
    assert end_of(failed.diagnostics).kind is EndKind.CODE


def test_an_application_whose_file_is_gone_never_starts(
    minicluster: Minicluster, session: ClusterSession, tmp_path: Path
) -> None:
    """A fence is such a file: YARN fetches it where it lies, as the application's user, before it starts the driver."""
    fence = f"/user/{getuser()}/contract-fence"
    session.hdfs.write(fence, "", overwrite=True)
    status = session.hdfs.status(fence)
    session.hdfs.delete(fence)
    resource = {
        "resource": f"{session.cluster.default_fs}{fence}",
        "type": "FILE",
        "visibility": "APPLICATION",
        "size": status.length,
        "timestamp": round(status.modified.timestamp() * 1000),
    }
    credentials = held(fetch(minicluster, tmp_path / "token"))
    container = {"local-resources": {"entry": [{"key": "fence", "value": resource}]}, "credentials": credentials}
    with sleeping(session, "fenced", container=container) as app:
        await_that(lambda: not session.yarn.application(app).alive, "it ends")
        ended = session.yarn.application(app)
    assert (ended.state, ended.succeeded) == (ApplicationState.FAILED, False)
    assert f"File does not exist: {session.cluster.default_fs}{fence}" in ended.diagnostics


def test_the_resourcemanager_tells_its_time(session: ClusterSession) -> None:
    with sleeping(session, "timed") as app:
        started = session.yarn.application(app).started
        assert started is not None
        # It tells whole seconds.
        assert timedelta(seconds=-1) < session.yarn.time_since(started) < PATIENCE
    assert session.yarn.info(session.yarn.active()).started < datetime.now(UTC)


def test_a_queue_tells_its_state_and_how_much_it_grants(session: ClusterSession) -> None:
    queues = session.yarn.queues()
    (queue,) = queues.queues
    expected = Queue("root.default", "RUNNING", most=Size(14_336), largest=Size(14_336, queue.largest.vcores))
    assert (queue, queues.complete) == (expected, True)
    assert queue.largest.vcores


@contextmanager
def stopped_queue(minicluster: Minicluster) -> Iterator[None]:
    """Stop the cluster's only queue, which then takes no application."""
    file = queues_file(minicluster)
    before = file.read_text()
    try:
        refresh(minicluster, file, with_state(before, "STOPPED"))
        yield
    finally:
        # A queue whose state is not configured any longer stays as it is.
        refresh(minicluster, file, with_state(before, "RUNNING"))
        file.write_text(before)


@contextmanager
def closed_queues(minicluster: Minicluster) -> Iterator[None]:
    """Take the right to submit from everybody."""
    file = queues_file(minicluster)
    before = file.read_text()
    closed = before.replace(EVERYBODY, EVERYBODY.replace("*", " "))
    assert closed != before
    try:
        refresh(minicluster, file, closed)
        yield
    finally:
        refresh(minicluster, file, before)


def queues_file(minicluster: Minicluster) -> Path:
    return read_site(minicluster.root).folders.daemon_conf / "capacity-scheduler.xml"


def with_state(conf: str, state: str) -> str:
    end = "</configuration>"
    return conf.replace(end, f"<property><name>{QUEUE}</name><value>{state}</value></property>{end}")


def refresh(minicluster: Minicluster, file: Path, text: str) -> None:
    file.write_text(text)
    done = minicluster.hadoop_main(ADMIN, "-refreshQueues", as_="hdfs")
    assert done.returncode == 0, done.stderr


def test_a_queue_that_was_stopped_is_draining_while_something_runs_in_it(
    minicluster: Minicluster, session: ClusterSession
) -> None:
    with sleeping(session, "draining") as app:
        with stopped_queue(minicluster):
            assert [queue.state for queue in session.yarn.queues().queues] == ["DRAINING"]
            assert session.yarn.application(app).alive
        await_that(lambda: session.yarn.queues().queues[0].state == "RUNNING", "the queue runs again", 60)


def test_who_lost_the_right_to_a_queue_knows_it_before_submitting(
    minicluster: Minicluster, session: ClusterSession
) -> None:
    assert session.yarn.checks_rights()
    gateway = replace(session, identity=replace(identity(minicluster, "gateway"), do_as=getuser()))
    with (
        sleeping(session, "placed-in") as app,
        access_as(minicluster, "supervisor") as other,
        closing(ResourceManagerRpc(rpc_conf(session.cluster), gateway.identity)) as impersonated,
    ):
        assert session.yarn.queue_of(app) in {"default", "root.default"}
        everywhere, nowhere = ({"root": may, "root.default": may} for may in (True, False))
        assert session.yarn.queue_rights() == impersonated.queue_rights() == everywhere
        with closed_queues(minicluster):
            assert session.yarn.queue_rights() == impersonated.queue_rights() == nowhere
            assert other.yarn.queue_rights() == everywhere, "it administers them"
            with pytest.raises(requests.HTTPError, match="400"), sleeping(session, "kept-out"):
                pass
        assert session.yarn.queue_rights() == everywhere


def test_rest_tells_rights_to_those_alone_who_administer_the_queue(
    minicluster: Minicluster, session: ClusterSession
) -> None:
    """So a stream's own user can't ask it, not even of itself."""
    path = f"/ws/v1/cluster/queues/default/access?queue-acl-type=SUBMIT_APPLICATIONS&user={getuser()}"
    statuses = []
    for name in ("streamer", "supervisor"):
        with closing(kerberos_session(identity(minicluster, name), session.cluster.tls)) as http:
            answer = http.get(session.yarn.active() + path, headers={"Accept": "application/json"}, timeout=60)
            statuses.append(answer.status_code)
    assert statuses == [403, 200]


def test_a_restarted_resourcemanager_counts_a_running_application_as_accepted_first(
    minicluster: Minicluster, living: Living
) -> None:
    """Until its driver has spoken to the new ResourceManager; it keeps its tags and its start."""
    yarn = living.supervisor.session.yarn
    before = yarn.application(living.application)
    assert before.state is ApplicationState.RUNNING
    minicluster.kill("resourcemanager")
    minicluster.start("resourcemanager")
    states = [yarn.application(living.application).state]

    def runs() -> bool:
        states.append(yarn.application(living.application).state)
        return states[-1] is ApplicationState.RUNNING

    await_that(runs, "it runs again")
    assert set(states) <= {ApplicationState.ACCEPTED, ApplicationState.RUNNING}
    after = yarn.application(living.application)
    assert replace(after, diagnostics=before.diagnostics) == before
