"""The token watch: one task looks at jobs and files that no stream's task watches, and what is mapped ends soon."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.model.errors import Denied, Unavailable
from airflow_kstream.model.kerberos.tokens import DelegationToken
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.operators.fleet_look import TokenLookOperator
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from tests.airflow.declarations import Declarations
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.hadoop_writers import Written, java_file, writable
from tests.simulated.life import SPEC
from tests.simulated.servers import CLUSTER
from tests.simulated.yarn import WEEK

DAY = timedelta(days=1)


def look(**declared: Any) -> dict[str, dict[str, str]]:
    task = TokenLookOperator(task_id="look", cluster_conn_id=CONNECTION, declared=declared)
    hands = task.execute(cast("Context", {}))
    assert json.loads(json.dumps(hands)) == hands
    return {hand["subject"]: hand for hand in hands}


def test_a_job_needs_a_hand_in_the_last_day_of_its_tokens(fleet: Fleet) -> None:
    app = fleet.yarn.start(frozenset({"nightly"}), user="etl")
    for declared in ({"users": ["etl"]}, {"tags": ["Nightly"]}, {"applications": [app.id]}):
        assert look(**declared) == {}
    fleet.clock.ahead += 6.1 * DAY
    for declared in ({"users": ["etl"]}, {"tags": ["Nightly"]}, {"applications": [app.id], "users": ["etl"]}):
        [(subject, hand)] = look(**declared).items()
        assert subject == app.id
        assert "the launch tokens of this job of etl end in 21h" in hand["why"]
    assert fleet.gauges["kstream.simulated.cluster.tokens_in_need"] == [0, 0, 0, 1, 1, 1]
    assert look(users=["reports"]) == {}
    fleet.clock.ahead += DAY
    assert look(users=["etl"]) == {}, "it outlived them, so it makes its own"


def test_an_application_that_ended_has_no_token_to_lose(fleet: Fleet) -> None:
    app = fleet.yarn.start(frozenset({"nightly"}), user="etl")
    fleet.clock.ahead += 6.5 * DAY
    fleet.yarn.end(app.id)
    assert look(users=["etl"], tags=["nightly"], applications=[app.id, "application_1_9999"]) == {}


def test_streams_are_left_to_their_own_tasks_adopted_ones_as_well(fleet: Fleet) -> None:
    fleet.declare("orders")
    adopted = fleet.yarn.start(frozenset())
    stream, spec = StreamId("sales", CLUSTER.state_dir), replace(SPEC, name="sales", checkpoints=("/data/sales",))
    draft = ClaimDraft(1, "nonce", spec, WEEK, {}, "test", adopted=adopted.id)
    StreamFolder(fleet.session, stream, acting=True).make_claim(draft)
    fleet.clock.ahead += 6.5 * DAY
    assert look(users=["streamer"]) == {}
    stranger = fleet.yarn.start(frozenset())
    fleet.clock.ahead += 6.5 * DAY
    assert look(users=["streamer"]).keys() == {stranger.id}


def test_a_file_needs_a_hand_until_its_tokens_are_replaced(fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "etl.token"
    now = fleet.clock.now()
    token = DelegationToken("etl", "yarn", "", now, now + 7 * DAY, 1, 1)
    file.write_bytes(java_file([Written("nn", "HDFS_DELEGATION_TOKEN", "nn:8020", writable(token), b"secret")]))
    assert look(files=[str(file)]) == {}
    for left in ("ends in 12h", "ended 12h ago"):
        fleet.clock.ahead += 6.5 * DAY if "in" in left else DAY
        [hand] = look(files=[str(file)]).values()
        assert left in hand["why"]
        assert "secret" not in str(hand)


def test_what_can_not_be_read_needs_a_hand_and_hides_nothing_else(fleet: Fleet, tmp_path: Path) -> None:
    hidden = fleet.yarn.start(frozenset(), user="etl")
    shown = fleet.yarn.start(frozenset(), user="etl")
    fleet.yarn.apps[hidden.id] = replace(hidden, started=None)
    fleet.clock.ahead += 6.5 * DAY
    needed = look(users=["etl"], files=[str(tmp_path / "gone.token")])
    assert needed.keys() == {hidden.id, shown.id, str(tmp_path / "gone.token")}
    assert "may not see when it started" in needed[hidden.id]["why"]


@pytest.mark.parametrize("error", [Unavailable("connection refused"), Denied("not an administrator")])
def test_a_cluster_that_does_not_answer_is_one_failure(fleet: Fleet, error: Exception) -> None:
    def fail(request: str, about: str) -> None:
        raise error

    fleet.yarn.at_request = fail
    with pytest.raises(type(error)):
        look(users=["etl"])


def test_wrong_input_is_refused(fleet: Fleet) -> None:
    with pytest.raises(AirflowFailException, match="it names nothing to watch"):
        look(within="1d")


def test_the_dag_maps_over_the_look_as_it_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "{users: [etl], files: [/etc/etl.token], within: 36h, every: 2h, airflow: {owner: ann, queue: edge}}"
    [dag] = Declarations("tokens", tmp_path, monkeypatch).dags_of(text).values()
    look, hand = dag.get_task("look"), dag.get_task("hand")
    assert isinstance(look, TokenLookOperator)
    assert (dag.dag_id, str(dag.schedule), dag.max_active_runs) == ("tokens-prod", "2:00:00", 1)
    assert dag.tags == {"kstream", "tokens"}
    assert (look.owner, look.queue, hand.owner, hand.queue) == ("ann", "edge") * 2
    assert look.declared == {
        "users": ["etl"],
        "tags": [],
        "applications": [],
        "files": ["/etc/etl.token"],
        "within": "129600s",
    }
    assert hand.is_mapped
    assert hand.upstream_task_ids == {"look"}
