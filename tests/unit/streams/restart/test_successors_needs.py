"""What a successor needs is asked before its predecessor is stopped: queue, files, checkpoints.

Simulated servers, because a queue that drains and a folder that refuses are wanted by the moment; what the real
ResourceManager's page and the real NameNode say is the business of tests/real/cluster/test_successor.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_kstream.model.clusters.queue import Needs, Queue, Queues, Size
from airflow_kstream.model.errors import (
    CredentialError,
    Denied,
    InvalidInput,
    KstreamError,
    NotFound,
    RestartAborted,
    Unavailable,
)
from airflow_kstream.model.streams.contract import blocked_marker
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.stream import OnChange
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.policy.streams.restart.watchable import queue_obstacle, refusing_queue
from airflow_kstream.policy.streams.spark.spark_needs import layered_setting, spark_needs
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import start_from
from airflow_kstream.supervise.streams.restart.dry_run import blocked
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.restart.submit import preflight
from airflow_kstream.supervise.streams.restart.successor import require_right_to_submit
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.ended_lives import end
from tests.simulated.flink import FlinkLife
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import session_of
from tests.simulated.yarn import CHECKPOINT, TICKET_SPEC

ROOM = Queue("root.streams", "RUNNING", most=Size(8192), largest=Size(4096, 8))
NEEDS = Needs("streams", declared=True, containers={"driver": Size(1408, 1), "executor": Size(1408, 2)})


def capacity(*queues: dict[str, Any], **root: Any) -> dict[str, Any]:
    """Return the page of a CapacityScheduler, as Hadoop 3.4.3 writes it, without what nobody reads."""
    info = {"type": "capacityScheduler", "queueName": "root", "queuePath": "root", "queues": {"queue": [*queues]}}
    return {"scheduler": {"schedulerInfo": info | root}}


def leaf(path: str, **more: Any) -> dict[str, Any]:
    most, largest = {"memory": 8192, "vCores": 16}, {"memory": 4096, "vCores": 8}
    more = {"maxEffectiveCapacity": most, "maximumAllocation": largest} | more
    name = path.rpartition(".")[2]
    return {"queuePath": path, "queueName": name, "state": "RUNNING", "autoCreationEligibility": "off", **more}


class TestTheSchedulersPage:
    def test_leaves_of_the_capacity_scheduler_tell_state_and_memory(self) -> None:
        parent = {"queuePath": "root.a", "queueName": "a", "queues": {"queue": [leaf("root.a.b", state="DRAINING")]}}
        queues = Queues.from_json(capacity(leaf("root.streams"), parent))
        assert queues == Queues((ROOM, replace(ROOM, path="root.a.b", state="DRAINING")), complete=True)

    def test_no_vcores_of_a_whole_queue_are_known_because_it_may_not_count_them(self) -> None:
        (queue,) = Queues.from_json(capacity(leaf("root.streams"))).queues
        assert (queue.most.vcores, queue.largest.vcores) == (None, 8)

    def test_a_queue_whose_containers_go_to_nodes_with_a_label_says_so(self) -> None:
        labels = ("gpu", "", None)
        queues = Queues.from_json(capacity(*(leaf("root.q", defaultNodeLabelExpression=label) for label in labels)))
        assert [queue.labelled for queue in queues.queues] == [True, False, False]

    def test_a_parent_that_makes_queues_makes_the_list_incomplete(self) -> None:
        for more in ({"autoCreateChildQueueEnabled": True}, {"autoCreationEligibility": "flexible"}):
            assert not Queues.from_json(capacity(leaf("root.streams"), **more)).complete

    def test_the_fair_scheduler_tells_sizes_and_no_states(self) -> None:
        most, largest = {"memory": 8192, "vCores": 16}, {"memory": 4096, "vCores": 8}
        child = {"queueName": "root.streams", "maxResources": most, "maxContainerAllocation": largest}
        for children in ({"queue": [child]}, [child]):
            info = {"type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": children}}
            queues = Queues.from_json({"scheduler": {"schedulerInfo": info}})
            assert queues == Queues((replace(ROOM, state="", most=Size(8192, 16)),))

    def test_a_share_of_no_nodes_says_nothing(self) -> None:
        """A ResourceManager that has just become active knows none until they report to it."""
        nothing = {"memory": 0, "vCores": 0}
        (queue,) = Queues.from_json(capacity(leaf("root.streams", maxEffectiveCapacity=nothing))).queues
        assert (queue.most, queue_obstacle(Queues((queue,), complete=True), NEEDS)) == (Size(), "")
        child = {"queueName": "root.streams", "maxResources": nothing}
        info = {"type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": [child]}}
        assert Queues.from_json({"scheduler": {"schedulerInfo": info}}) == Queues((Queue("root.streams"),))

    def test_another_scheduler_has_no_queues_that_we_know(self) -> None:
        assert Queues.from_json({"scheduler": {"schedulerInfo": {"type": "fifoScheduler"}}}) == Queues()


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        (ROOM, ""),
        (replace(ROOM, most=Size(), largest=Size(), state=""), ""),
        (replace(ROOM, state="STOPPED"), "queue root.streams is STOPPED and takes no application"),
        (replace(ROOM, state="DRAINING"), "queue root.streams is DRAINING"),
        (
            replace(ROOM, most=Size(2815)),
            "its driver and one executor need 2816 MiB, and queue root.streams never has more",
        ),
        (replace(ROOM, most=Size(2816)), ""),
        (
            replace(ROOM, largest=Size(1407)),
            "its driver needs 1408 MiB, and queue root.streams grants no container above",
        ),
        (replace(ROOM, largest=Size(1408)), ""),
        (
            replace(ROOM, largest=Size(1408, 1)),
            "its executor needs 2 vcores, and queue root.streams grants no container",
        ),
        (replace(ROOM, most=Size(vcores=2)), "its driver and one executor need 3 vcores, and queue root.streams never"),
        (replace(ROOM, most=Size(vcores=3)), ""),
        (replace(ROOM, most=Size(1, 1), labelled=True), ""),
    ],
)
def test_a_queue_has_to_run_and_to_be_large_enough(queue: Queue, says: str) -> None:
    obstacle = queue_obstacle(Queues((queue,), complete=True), NEEDS)
    assert says in obstacle
    assert bool(says) == bool(obstacle)


def test_what_nodes_with_a_label_have_is_not_told_by_the_size_of_a_queue() -> None:
    small = Queues((replace(ROOM, most=Size(1)),), complete=True)
    assert queue_obstacle(small, replace(NEEDS, labelled=True)) == ""
    too_large = Queues((replace(ROOM, largest=Size(1)),), complete=True)
    assert "grants no container above 1 MiB" in queue_obstacle(too_large, replace(NEEDS, labelled=True))


def test_a_declared_queue_that_is_not_there_is_an_obstacle_unless_it_may_be_made() -> None:
    other = replace(ROOM, path="root.other")
    assert queue_obstacle(Queues((other,), complete=True), NEEDS) == "there is no queue streams; there are root.other"
    assert queue_obstacle(Queues((other,), complete=False), NEEDS) == ""
    assert queue_obstacle(Queues((other,), complete=True), replace(NEEDS, declared=False)) == ""


def test_a_name_that_two_queues_end_with_tells_nothing() -> None:
    stopped = Queues((replace(ROOM, state="STOPPED"), replace(ROOM, path="root.a.streams")), complete=True)
    assert queue_obstacle(stopped, NEEDS) == ""
    assert "is STOPPED" in queue_obstacle(stopped, replace(NEEDS, queue="root.streams"))


STREAMS, DEFAULT = Needs("streams", declared=True), Needs("default", declared=False)
SHUT = {"root": False, "root.streams": False, "root.default": False, "root.open": True}


@pytest.mark.parametrize(
    ("needs", "asked", "placed", "refuses"),
    [
        (STREAMS, "streams", "root.streams", "root.streams"),
        (STREAMS, "root.streams", "streams", "root.streams"),
        (replace(STREAMS, queue="open"), "open", "open", ""),
        (replace(STREAMS, queue="root.new"), "streams", "streams", ""),
        # A queue that was declared since: rules left the last choice alone.
        (STREAMS, "open", "root.open", "root.streams"),
        (STREAMS, "default", "root.default", "root.streams"),
        # Rules chose another queue than the one that was asked for, and will do so again.
        (STREAMS, "streams", "root.open", ""),
        (STREAMS, "streams", "root.users.ada", ""),
        (STREAMS, "streams", "", ""),
        (DEFAULT, "default", "root.users.ada", ""),
        # The choice is left to them from now on.
        (DEFAULT, "streams", "root.streams", ""),
        (replace(DEFAULT, declared=True), "streams", "root.streams", ""),
        # They have chosen none so far.
        (DEFAULT, "default", "root.default", "root.default"),
    ],
)
def test_a_queue_refuses_whom_its_acl_keeps_out_if_no_rule_chooses_another(
    needs: Needs, asked: str, placed: str, refuses: str
) -> None:
    assert refusing_queue(SHUT, needs, asked, placed) == refuses


def test_a_queue_of_hadoop_3_2_has_its_last_word_for_a_name() -> None:
    assert refusing_queue({"root": True, "streams": False}, STREAMS, "streams", "streams") == "streams"


def test_two_queues_that_end_with_a_name_refuse_nobody() -> None:
    assert refusing_queue(SHUT | {"root.a.streams": False}, STREAMS, "streams", "root.streams") == ""


def needs_of(deploy: Deploy, conf: dict[str, str], application: str = "/jobs/orders.py") -> Needs:
    spec = replace(TICKET_SPEC, deploy=deploy, application=application)
    return spark_needs(spec, layered_setting(conf, default=lambda key: ""), None, "hdfs://prod")


OFF_HEAP = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}
PYTHON = {"spark.executor.pyspark.memory": "512m"}


@pytest.mark.parametrize(
    ("deploy", "conf", "driver", "executor"),
    [
        (Deploy(), {}, 1024 + 384, 1024 + 384),
        (Deploy(driver_memory="8g"), {"spark.executor.memory": "512"}, 8192 + 819, 512 + 384),
        (Deploy(), {"spark.driver.memoryOverhead": "1g"}, 1024 + 1024, 1024 + 384),
        (Deploy(executor_memory="8g"), {"spark.executor.memoryOverheadFactor": "0.01"}, 1024 + 384, 8192 + 384),
        (Deploy(), {"spark.executor.minMemoryOverhead": "128m"}, 1024 + 384, 1024 + 128),
        (Deploy(), OFF_HEAP, 1024 + 384, 1024 + 384 + 1024),
        (Deploy(), OFF_HEAP | {"spark.memory.offHeap.enabled": "false"}, 1024 + 384, 1024 + 384),
        (Deploy(), OFF_HEAP | {"spark.memory.offHeap.size": str(256 * 1024**2)}, 1024 + 384, 1024 + 384 + 256),
        (Deploy(), PYTHON, 1024 + 384, 1024 + 384 + 512),
        (Deploy(executor_memory="plenty"), {}, 1024 + 384, None),
    ],
)
def test_sparks_containers_are_heap_and_overhead_and_what_executors_have_beside(
    deploy: Deploy, conf: dict[str, str], driver: int, executor: int | None
) -> None:
    needs = needs_of(deploy, conf).containers
    assert (needs["driver"].memory, needs["executor"].memory) == (driver, executor)


def test_a_jar_needs_no_memory_of_pythons() -> None:
    assert needs_of(Deploy(), PYTHON, "/jobs/orders.jar").containers["executor"].memory == 1024 + 384


def test_sparks_containers_need_cores() -> None:
    def cores(deploy: Deploy, conf: dict[str, str]) -> list[int | None]:
        return [size.vcores for size in needs_of(deploy, conf).containers.values()]

    assert cores(Deploy(), {}) == [1, 1]
    assert cores(Deploy(executor_cores=4), {"spark.driver.cores": "2", "spark.executor.cores": "8"}) == [2, 4]
    assert cores(Deploy(), {"spark.executor.cores": "many"}) == [1, None]


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.executor.instances": "100"},
        {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.minExecutors": "0"},
        {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.initialExecutors": "50"},
    ],
)
def test_a_stream_goes_on_with_one_executor_whatever_it_asks_for(conf: dict[str, str]) -> None:
    """Its predecessor had no more than the queue gives: to refuse the successor would mend nothing."""
    assert needs_of(Deploy(executors=20), conf) == needs_of(Deploy(), {})


@pytest.mark.parametrize("role", ["am", "executor"])
def test_a_label_that_a_container_asks_for_is_seen(role: str) -> None:
    assert needs_of(Deploy(), {f"spark.yarn.{role}.nodeLabelExpression": "gpu"}).labelled
    assert not needs_of(Deploy(), {}).labelled


def test_the_queue_is_the_declared_one_the_clients_or_the_connections() -> None:
    connection = layered_setting({"spark.yarn.queue": "c"}, default=lambda key: "")
    nothing = layered_setting(default=lambda key: "")

    def queue(deploy: Deploy, client: SparkDefaults, setting: Callable[[str], str]) -> tuple[str, bool]:
        needs = spark_needs(replace(TICKET_SPEC, deploy=deploy), setting, client.queue, "hdfs://prod")
        return needs.queue, needs.declared

    assert queue(Deploy(queue="a"), SparkDefaults(queue="b"), connection) == ("a", True)
    assert queue(Deploy(), SparkDefaults(queue="b"), connection) == ("b", True)
    assert queue(Deploy(), SparkDefaults(), connection) == ("c", True)
    assert queue(Deploy(), SparkDefaults(), nothing) == ("default", False)


def test_the_files_that_are_looked_at_lie_on_our_hdfs_and_have_a_name() -> None:
    deploy = Deploy(
        jars=("hdfs://prod/a.jar", "hdfs://other/b.jar", "s3a://bucket/c.jar", "/local/d.jar", "hdfs:///e/*.jar"),
        files=("hdfs:///f.conf#conf",),
    )
    spec = replace(TICKET_SPEC, application="hdfs:///jobs/orders.py", deploy=deploy)
    needs = spark_needs(spec, layered_setting(default=lambda key: ""), None, "hdfs://prod")
    assert needs.files == ("hdfs:///jobs/orders.py", "hdfs://prod/a.jar", "hdfs:///f.conf")


def drained(life: Life) -> None:
    life.yarn.scheduler = Queues((Queue("root.default", "DRAINING"),), complete=True)


def without_its_right(life: Life) -> None:
    life.yarn.rights = {"root": False, "root.default": False}


def without_its_jar(life: Life) -> None:
    life.engine.files = ("hdfs:///jobs/gone.jar",)


def with_a_secret_jar(life: Life) -> None:
    life.engine.files = ("/kstream/jar",)
    life.hdfs.write("/kstream/jar", "")
    life.hdfs.refused = ("r-- /kstream/jar",)


def with_a_foreign_checkpoint(life: Life) -> None:
    life.hdfs.refused = (f"rwx {CHECKPOINT}",)


def with_a_foreign_owners_record(life: Life) -> None:
    life.hdfs.refused = (f"-wx {CHECKPOINT}/_kstream",)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (drained, "queue root.default is DRAINING"),
        (
            without_its_right,
            "make sure that its queue takes the next generation of orders on http://rm:8088 as streamer@EXAMPLE.COM: "
            "user streamer may not submit to queue root.default",
        ),
        (without_its_jar, "hdfs:///jobs/gone.jar does not exist"),
        (with_a_secret_jar, "access=r--"),
        (with_a_foreign_checkpoint, "access=rwx"),
        (with_a_foreign_owners_record, "access=-wx"),
    ],
)
class TestASuccessorThatLacksSomething:
    def test_keeps_its_predecessor_running(self, life: Life, trouble: Callable[[Life], None], says: str) -> None:
        life.begin()
        life.engine.complete_epoch(SPEC)
        trouble(life)
        life.request_restart()
        before = life.run.folder.names()
        with pytest.raises(RestartAborted, match="the current generation keeps running") as aborted:
            life.reconcile()
        assert says in str(aborted.value)
        assert life.yarn.apps["application_1_0001"].alive
        assert life.run.folder.names() == before | {blocked_marker(1)}, "only why is noted"

    def test_does_not_hold_up_a_restart_that_is_forced(
        self, life: Life, trouble: Callable[[Life], None], says: str
    ) -> None:
        life.begin()
        life.engine.complete_epoch(SPEC)
        trouble(life)
        life.clock.ahead += timedelta(days=6, hours=23, minutes=30)
        assert life.reconcile().generation == 2


@pytest.mark.parametrize("late", [timedelta(), timedelta(days=8)], ids=["changed", "at its horizon"])
def test_a_job_that_runs_is_not_stopped_for_one_of_another_engine(life: Life, late: timedelta) -> None:
    """Nothing could follow it: no engine goes on with another's state."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    flink = FlinkLife(life)
    flink.reopen(flink.changed(on_change=OnChange.RESTART))
    life.clock.ahead += late
    with pytest.raises(RestartAborted, match="is a job of Spark's, and Flink can't go on with its state"):
        life.reconcile(Mode.WATCH)
    assert life.yarn.apps["application_1_0001"].alive
    observation, step = Reconciler(life.run).plan(Mode.WATCH)
    assert isinstance(step, Stop)
    assert step.preflight, "the task that tries waits longer and longer"
    assert "is a job of Spark's" in blocked(life.run, observation, step)[0]


def test_a_job_of_flinks_is_not_measured_as_one_of_sparks(life: Life) -> None:
    flink = FlinkLife(life)
    start_from(life.run, "a new stream", fresh=True)
    life.begin()
    require_right_to_submit(StreamRun(session_of(life.hdfs, life.yarn), SPEC, SparkEngine()), observe(life.run))
    assert flink.application.alive


def test_the_refusal_names_what_was_tried_where_and_as_whom(life: Life) -> None:
    life.begin()
    drained(life)
    life.request_restart()
    with pytest.raises(RestartAborted) as aborted:
        life.reconcile()
    said_ = "find room for the next generation of orders on http://rm:8088 as streamer@EXAMPLE.COM: queue root.default"
    assert said_ in str(aborted.value)


@pytest.mark.parametrize("error", [Unavailable, Denied, NotFound])
def test_a_scheduler_that_does_not_tell_its_queues_holds_nothing_up(life: Life, error: type[KstreamError]) -> None:
    def silent(request: str, about: str) -> None:
        if request == "queues":
            raise error("its page is away")

    life.begin()
    life.yarn.at_request = silent
    life.request_restart()
    assert life.reconcile().generation == 2


@pytest.mark.parametrize("question", ["queue_rights", "queue_of", "checks_rights"])
@pytest.mark.parametrize("error", [InvalidInput, Unavailable, Denied, CredentialError])
def test_a_right_that_nobody_tells_holds_nothing_up(life: Life, question: str, error: type[KstreamError]) -> None:
    def silent(request: str, about: str) -> None:
        if request == question:
            raise error("it does not tell")

    life.begin()
    without_its_right(life)
    life.yarn.at_request = silent
    life.request_restart()
    assert life.reconcile().generation == 2


def test_acls_that_are_switched_off_hold_nothing_up(life: Life) -> None:
    life.begin()
    without_its_right(life)
    life.yarn.acls = False
    life.request_restart()
    assert life.reconcile().generation == 2


def test_rules_that_place_it_elsewhere_need_no_right_to_what_it_asks_for(life: Life) -> None:
    life.yarn.places_in, life.yarn.rights = "root.users.streamer", {"root.default": False, "root.users.streamer": True}
    life.begin()
    life.request_restart()
    assert life.reconcile().generation == 2


def test_a_restart_that_lacked_its_right_comes_once_it_has_it(life: Life) -> None:
    life.begin()
    without_its_right(life)
    life.request_restart()
    with pytest.raises(RestartAborted):
        life.reconcile()
    life.yarn.rights = {"root.default": True}
    assert life.reconcile().generation == 2


def test_rights_are_asked_before_a_stop_alone(life: Life) -> None:
    """YARN itself refuses a start, which costs nothing; a look at what is healthy needs no answer."""
    asked: list[str] = []
    life.yarn.at_request = lambda request, about: asked.append(request)
    life.begin()
    life.reconcile()
    assert "queue_rights" not in asked
    life.request_restart()
    life.reconcile()
    assert (asked.count("queue_rights"), asked.count("checks_rights")) == (1, 0)


def test_nothing_is_asked_of_rights_once_a_generation_has_ended(life: Life) -> None:
    asked: list[str] = []
    life.begin()
    life.yarn.at_request = lambda request, about: asked.append(request)
    end(life)
    preflight(life.run, observe(life.run))
    assert "queue_rights" not in asked


def test_a_dry_run_names_the_right_that_a_restart_lacks(life: Life) -> None:
    life.begin()
    without_its_right(life)
    life.request_restart()
    observation = observe(life.run)
    (why,) = blocked(life.run, observation, Stop(1, "application_1_0001", "a new jar", preflight=True))
    assert "user streamer may not submit to queue root.default" in why


def test_a_dry_run_proves_nothing_by_a_server_that_is_away(life: Life) -> None:
    def away() -> None:
        raise Unavailable("no KDC answers", tried="log in")

    life.begin()
    life.kdc.at_request = away
    observation, step = observe(life.run), Stop(1, "application_1_0001", "a new jar", preflight=True)
    with pytest.raises(Unavailable, match="no KDC answers"):
        blocked(life.run, observation, step)
    without_its_right(life)
    (why,) = blocked(life.run, observation, step)
    assert "may not submit" in why


def test_a_dry_run_of_a_forced_stop_does_not_ask_for_what_its_successor_needs(life: Life) -> None:
    life.begin()
    without_its_right(life)
    assert blocked(life.run, observe(life.run), Stop(1, "application_1_0001", "its end is near", preflight=False)) == ()


def test_a_checkpoint_that_is_yet_to_be_made_needs_the_right_to_make_it(life: Life) -> None:
    life.hdfs.write("/data/other", "")
    life.hdfs.refused = ("-wx /data",)
    with pytest.raises(Denied, match="access=-wx"):
        life.begin()
    assert life.run.folder.names() == frozenset()


NOBODY = "its web server wants no proof of who asks, and its RPC can't be used"


def test_what_nobody_could_stop_is_not_submitted_for_the_first_time(life: Life) -> None:
    life.yarn.unstoppable, life.engine.ignores_stops = NOBODY, True
    with pytest.raises(Denied, match=NOBODY):
        life.begin()
    assert life.run.folder.names() == frozenset()


def test_a_job_that_obeys_its_marker_needs_nobody_who_stops_it(life: Life) -> None:
    life.yarn.unstoppable = NOBODY
    assert life.begin().generation == 1


def test_what_runs_already_is_restarted_although_only_its_marker_can_stop_it(life: Life) -> None:
    life.begin()
    life.yarn.unstoppable, life.engine.ignores_stops = NOBODY, True
    life.request_restart()
    assert life.reconcile().generation == 2


def test_a_cluster_whose_nodes_are_not_back_yet_costs_no_generation(life: Life) -> None:
    def back_later(request: str, about: str) -> None:
        if request == "running_nodes" and life.clock.now() > ended + timedelta(minutes=4):
            life.yarn.nodes = 2

    life.begin()
    end(life)
    life.engine.needs_nodes = True
    ended, life.yarn.nodes, life.yarn.at_request = life.clock.now(), 0, back_later
    told: list[str] = []
    assert Reconciler(life.run, told.append).run().generation == 2
    assert life.clock.now() > ended + timedelta(minutes=4)
    assert any("find a node for the next generation of orders" in line for line in told)


def test_nothing_that_runs_is_stopped_while_no_node_could_run_its_successor(life: Life) -> None:
    life.begin()
    life.request_restart()
    life.yarn.nodes = 0
    with pytest.raises(RestartAborted, match="no node of YARN's runs; the current generation keeps running"):
        life.reconcile()
    life.yarn.nodes = 1
    assert life.reconcile().generation == 2


@pytest.mark.parametrize("error", [Unavailable, Denied, NotFound])
def test_nodes_that_nobody_counts_hold_nothing_up(life: Life, error: type[KstreamError]) -> None:
    def silent(request: str, about: str) -> None:
        if request == "running_nodes":
            raise error("its page is away")

    life.begin()
    end(life)
    life.engine.needs_nodes, life.yarn.nodes, life.yarn.at_request = True, 0, silent
    assert life.begin().generation == 2


def test_what_waits_for_a_node_is_submitted_before_an_autoscaler_adds_one(life: Life) -> None:
    life.yarn.nodes = 0
    assert life.begin().generation == 1
