"""The fleet look: one task looks at all streams, and what is mapped is what needs a hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.model.streams.event import ToldSubject
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.operators.fleet_look import FleetLookOperator, NeedsAHandOperator
from airflow_kstream.operators.retries import RETRY_IF_IT_HELPS
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.airflow import notifiers
from tests.airflow.declarations import Declarations
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import CLUSTER, ONE_WEEK

NEEDED = "kstream.simulated.cluster.streams_in_need"


class Runs:
    """The runs of the first task, and the note that they keep since when steps are due."""

    note = f"{CLUSTER.state_dir}/told.streamer/{ToldSubject('', CONNECTION, key='pending_steps').file_name}"

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    @property
    def kept(self) -> Any:
        return json.loads(self.fleet.hdfs.files[self.note][0])["kept"] if self.note in self.fleet.hdfs.files else {}

    @kept.setter
    def kept(self, value: Any) -> None:
        text, when = self.fleet.hdfs.files[self.note]
        self.fleet.hdfs.files[self.note] = json.dumps({**json.loads(text), "kept": value}), when

    def look(self) -> dict[str, dict[str, str]]:
        task = FleetLookOperator(task_id="look", cluster_conn_id=CONNECTION)
        return {hand["subject"]: hand for hand in task.execute(cast("Context", {}))}


def test_a_healthy_fleet_maps_no_task_and_is_looked_at_without_a_change(fleet: Fleet) -> None:
    fleet.declare("orders", "sales")
    set_desired(fleet.run_of("sales"), DesiredState.HELD, "its source moves")
    files = dict(fleet.hdfs.files)
    runs = Runs(fleet)
    for _ in range(3):
        assert runs.look() == {}
        fleet.clock.sleep(900)
    assert (fleet.hdfs.files, runs.kept) == (files, {})
    assert all(app.alive for app in fleet.yarn.apps.values())
    assert fleet.gauges[NEEDED] == [0, 0, 0]
    assert fleet.told("need a hand") == fleet.told("0 of 2 streams need a hand") == 3


def test_somebody_hears_once_that_nobody_watches_a_stream_and_once_of_its_end(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.Recording")
    notifiers.forget()
    fleet.declare("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    runs = Runs(fleet)
    for _ in range(3):
        runs.look()
        fleet.clock.sleep(1800)
        fleet.engine.complete_epoch(fleet.specs["sales"])
    set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "it is no longer needed")
    runs.look()

    begin, end = (text for _, text in notifiers.told)
    assert begin.startswith(
        "simulated: nobody watches a stream (orders): nobody seems to watch it: a step is due since"
    )
    assert end.startswith("simulated: the stream is watched again (orders), after ")


def test_a_stream_that_nobody_watches_needs_a_hand_after_two_looks(fleet: Fleet) -> None:
    fleet.declare("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    runs = Runs(fleet)
    assert runs.look() == {}
    fleet.clock.sleep(1800)
    fleet.engine.complete_epoch(fleet.specs["sales"])
    [(subject, hand)] = runs.look().items()
    assert (subject, hand["kind"]) == ("orders", "nobody_watches")
    assert "nobody seems to watch it" in hand["why"]
    assert len(fleet.generations("orders")) == 1


def test_a_time_of_the_future_that_somebody_wrote_counts_as_now(fleet: Fleet) -> None:
    fleet.declare("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    runs = Runs(fleet)
    runs.look()
    runs.kept = {"orders": ["nobody_watches", 1, "9999-01-01T00:00:00+00:00"], "sales": [{}, "x"], "x" * 9999: 7}
    assert runs.look() == {}
    fleet.clock.sleep(1800)
    fleet.engine.complete_epoch(fleet.specs["sales"])
    assert runs.look()["orders"]["kind"] == "nobody_watches"


def test_a_row_that_somebody_wrote_holds_no_alert_back(fleet: Fleet) -> None:
    fleet.declare("orders", "sales")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)
    runs = Runs(fleet)
    runs.look()
    fleet.clock.sleep(1800)
    fleet.engine.complete_epoch(fleet.specs["sales"])
    just_now = fleet.hdfs.now().isoformat()
    fleet.store[asset_uri(CONNECTION), "pending_steps"] = {"orders": ["nobody_watches", 1, just_now]}
    assert runs.look()["orders"]["kind"] == "nobody_watches"


def test_what_can_not_be_kept_now_costs_no_look(fleet: Fleet) -> None:
    fleet.declare("orders")
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id)

    def full(request: str, path: str) -> None:
        if request == "write" and "/told." in path:
            raise Denied("the quota of /kstream is exceeded")

    fleet.hdfs.at_request = full
    runs = Runs(fleet)
    assert runs.look() == {}
    assert fleet.told("can't be kept, so the next look may count from zero") == 1


def test_a_damaged_claim_needs_a_hand_and_costs_no_other_stream_its_look(fleet: Fleet) -> None:
    fleet.declare("orders", "sales")
    [claim] = [path for path in fleet.hdfs.files if "/orders-" in path and path.endswith("gen-000001")]
    fleet.hdfs.files[claim] = ("{", fleet.hdfs.files[claim][1])
    needed = Runs(fleet).look()
    assert needed.keys() == {"orders"}
    assert needed["orders"]["kind"] == "unseen"
    assert "can't be understood" in needed["orders"]["why"]


def test_a_cluster_that_is_away_is_one_failure_that_a_retry_may_end(fleet: Fleet) -> None:
    fleet.declare(*(f"stream-{number}" for number in range(30)))
    fleet.yarn.away = True
    with pytest.raises(Unavailable, match="30 of 30 streams can't be seen: ") as error:
        Runs(fleet).look()
    assert str(error.value).count("Retrying may help") == 1
    assert RETRY_IF_IT_HELPS.evaluate(error.value, 1, 12).action.value == "retry"
    fleet.yarn.away = False
    assert Runs(fleet).look() == {}


def test_a_state_dir_that_is_gone_is_a_failure(fleet: Fleet) -> None:
    def gone(request: str, path: str) -> None:
        if path == CLUSTER.state_dir and request == "status":
            raise NotFound(path)

    fleet.hdfs.at_request = gone
    with pytest.raises(NotFound, match="/kstream"):
        Runs(fleet).look()


def test_streams_that_die_in_a_freeze_need_one_hand_together(fleet: Fleet) -> None:
    fleet.declare("orders", "sales")
    FreezeStore(fleet.session, "ann").freeze(ONE_WEEK, "a new NameNode")
    [hand] = Runs(fleet).look().values()
    assert (hand["subject"], hand["kind"]) == ("2 streams", "frozen_past_its_time")
    assert "unfreeze" in hand["way_out"]
    assert fleet.told("The cluster is frozen until") == 1


def test_a_mapped_task_fails_at_once_with_the_cause_and_the_way_out() -> None:
    hand = {"subject": "orders", "kind": "unseen", "why": "{{ no template }}", "way_out": "see"}
    task = NeedsAHandOperator(task_id="hand", hand=hand)
    assert task.subject == "orders"
    assert "hand" not in task.template_fields
    with pytest.raises(AirflowFailException, match=r"orders: \{\{ no template \}\}\. Way out: see"):
        task.execute(cast("Context", {}))


def test_the_dag_maps_over_the_result_of_one_look_and_is_its_folders_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text(
        "{name: orders, credentials: {mode: ticket}, application: /jobs/orders.py, checkpoints: [/c], "
        "airflow: {owner: sales, queue: edge, tags: [sales]}}"
    )
    monkeypatch.setenv("AIRFLOW__KSTREAM__FLEET_EVERY", "1h")
    dag = Declarations("streams", tmp_path, monkeypatch).dags()["fleet-prod"]
    look, hand = dag.get_task("look"), dag.get_task("hand")
    assert (str(dag.schedule), dag.max_active_runs, dag.tags) == ("1:00:00", 1, {"kstream", "fleet", "sales"})
    assert hand.is_mapped
    assert (hand.upstream_task_ids, hand.retries) == ({"look"}, 0)
    assert (look.owner, look.queue, hand.owner, hand.queue) == ("sales", "edge") * 2
    assert (look.retries, look.retry_delay.total_seconds()) == (12, 300)
    assert "which need a hand" in str(dag.description)
