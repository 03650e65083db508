"""A person's word from Airflow: who may say what of which stream, and whose name it carries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from airflow_kstream.model.errors import Conflict, NotFound, Unavailable
from airflow_kstream.model.streams.generation import Desired, DesiredState, StreamId
from airflow_kstream.model.streams.resume import StartWord
from airflow_kstream.operators.stream_control import Action, StreamControlOperator
from airflow_kstream.supervise.streams.folder.registry import registered
from tests.airflow.declarations import Declarations, form
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import CLUSTER

MINUTE = 60.0
ONE = "{name: orders, credentials: {mode: ticket}, application: /jobs/orders.py, checkpoints: [/data/orders]}"


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.declare("orders", "sales")
    return fleet


def say(action: str, stream: str = "orders", run: Any = None, **fields: Any) -> str:
    fields = {"reason": "Kafka is moved", "streams": ["orders", "sales"], **fields}
    task = StreamControlOperator(task_id="control", cluster_conn_id=CONNECTION, action=action, stream=stream, **fields)
    return task.execute(cast("Context", {"dag_run": run or by_hand("ann")}))


def by_hand(user: str | None) -> SimpleNamespace:
    return SimpleNamespace(run_type="manual", triggering_user_name=user, dag_id="control-prod")


def desired(fleet: Fleet, name: str = "orders") -> Desired:
    return registered(fleet.session, StreamId(name, CLUSTER.state_dir)).desired()


@pytest.mark.parametrize(
    ("action", "state"),
    [
        (Action.HOLD, DesiredState.HELD),
        (Action.START, DesiredState.RUNNING),
        (Action.STOP, DesiredState.STOPPED),
        (Action.RESTART, DesiredState.RUNNING),
    ],
)
def test_a_word_carries_the_name_of_who_clicked_and_the_reason(
    fleet: Fleet, action: Action, state: DesiredState
) -> None:
    say(action)
    word = desired(fleet)
    assert (word.state, word.by, word.author, word.reason) == (state, "ann", "streamer", "Kafka is moved")
    assert desired(fleet, "sales").state is DesiredState.RUNNING


def test_a_start_can_say_where_the_next_generation_begins(fleet: Fleet) -> None:
    with pytest.raises(Conflict, match="stop the stream first"):
        say(Action.START, begins="fresh")
    say(Action.STOP)
    assert say(Action.START, begins="fresh").endswith("its next generation begins with fresh")
    assert desired(fleet).start == StartWord(2, fresh=True)
    with pytest.raises(AirflowFailException, match="/nowhere has no _metadata"):
        say(Action.START, begins="/nowhere")
    say(Action.START)
    assert desired(fleet).start is None


@pytest.mark.parametrize(
    "run",
    [
        SimpleNamespace(run_type="operator_triggered", triggering_user_name="ann", dag_id="nightly"),
        SimpleNamespace(run_type="scheduled", triggering_user_name=None, dag_id="nightly"),
        SimpleNamespace(run_type="manual", triggering_user_name=None, dag_id="nightly"),
    ],
)
def test_the_word_of_a_run_that_no_person_triggered_is_its_dags(fleet: Fleet, run: SimpleNamespace) -> None:
    say(Action.HOLD, run=run)
    assert desired(fleet).by == "DAG nightly"


def test_a_stop_ends_the_task_when_the_stream_has_stopped(fleet: Fleet) -> None:
    said = say(Action.STOP)
    assert said.startswith("orders: it is stopped, as ann (HDFS user streamer) wants")
    assert [app.alive for _, app in fleet.generations("orders")] == [False]
    assert [app.alive for _, app in fleet.generations("sales")] == [True]


def test_a_restart_is_carried_out_by_the_task_that_watches(fleet: Fleet) -> None:
    async def story() -> None:
        await asyncio.sleep(MINUTE)
        said = say(Action.RESTART)
        assert said == "orders: generation 1 is to be replaced"
        await asyncio.sleep(5 * MINUTE)

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert [number for number, _ in fleet.generations("sales")] == [1]


def test_the_word_stands_although_the_servers_are_away_when_it_is_to_be_carried_out(fleet: Fleet) -> None:
    fleet.yarn.away = True
    assert (
        say(Action.STOP)
        == "orders: its desired state is stopped; the task that watches it stops it once the servers answer"
    )
    assert desired(fleet).state is DesiredState.STOPPED


def test_a_word_that_could_not_be_written_is_a_failure(fleet: Fleet) -> None:
    fleet.hdfs.refuses_writes = True
    with pytest.raises(Unavailable):
        say(Action.HOLD)


def test_a_freeze_stops_no_stream_and_lets_none_be_stopped(fleet: Fleet) -> None:
    said = say(Action.FREEZE, stream="", lasts="2h")
    assert "by ann (HDFS user streamer): Kafka is moved" in said
    with pytest.raises(
        Conflict, match=r"the cluster is frozen until .* by ann .*: Kafka is moved; .* Retrying may help"
    ):
        say(Action.STOP)
    assert desired(fleet).state is DesiredState.RUNNING
    say(Action.UNFREEZE, stream="")
    assert say(Action.STOP).startswith("orders: it is stopped, as ann (HDFS user streamer) wants")


def test_a_freeze_is_lifted_whatever_stands_in_the_field_for_its_length(fleet: Fleet) -> None:
    say(Action.FREEZE, stream="")
    say(Action.UNFREEZE, stream="", lasts="soon")
    assert not fleet.run_of("orders").is_frozen()


def test_a_freeze_tells_which_streams_die_in_it(fleet: Fleet) -> None:
    say(Action.FREEZE, stream="", lasts="7d")
    assert fleet.told("its restart is due") == 2


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"action": "kill"}, "action is 'kill'; allowed are start, stop, restart, hold, freeze, unfreeze"),
        ({"action": "hold", "stream": "payments"}, "stream is 'payments'; this task may hold one of: orders, sales"),
        ({"action": "hold", "stream": ""}, "stream is ''; this task may hold one of"),
        ({"action": "hold", "streams": []}, "stream is 'orders'; this task may hold one of: none"),
        ({"action": "hold", "reason": "  "}, "reason is empty; the next person will ask why"),
        ({"action": "freeze", "lasts": "8d"}, "lasts is 8d; allowed is more than 0s, and up to 7d"),
        ({"action": "freeze", "lasts": "0s"}, "lasts is 0s; allowed is more than 0s, and up to 7d"),
        ({"action": "freeze", "lasts": "a while"}, "a while"),
    ],
)
def test_wrong_input_is_refused_on_the_worker_and_not_retried(fleet: Fleet, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        say(**fields)
    assert desired(fleet).by == ""
    assert not fleet.run_of("orders").is_frozen()


def test_what_a_form_has_for_a_name_drives_no_terminal(fleet: Fleet) -> None:
    with pytest.raises(AirflowFailException):
        say(Action.HOLD, stream="orders\x1b[2J")
    assert fleet.told("orders") == 1
    assert fleet.told("\x1b") == 0


def test_a_stream_that_was_never_submitted_has_nothing_to_restart(fleet: Fleet) -> None:
    assert say(Action.HOLD, stream="new", streams=["new"]) == "new: held; it was never submitted"
    with pytest.raises(NotFound, match="no generation of it was ever claimed"):
        say(Action.RESTART, stream="new", streams=["new"])


def test_a_task_that_may_control_any_stream_knows_a_mistyped_name(fleet: Fleet) -> None:
    with pytest.raises(NotFound, match=r"has orders, sales \(did you mean orders\?\)"):
        say(Action.HOLD, stream="ordres", streams=None)


class TestForm:
    """The form of a folder's control DAG."""

    @pytest.fixture
    def declared(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declarations:
        declared = Declarations("streams", tmp_path, monkeypatch)
        for cluster, name in (("east", "orders"), ("west", "sales")):
            (tmp_path / cluster).mkdir()
            (tmp_path / cluster / f"{name}.yaml").write_text(ONE.replace("orders", name))
        return declared

    def test_each_folder_has_a_dag_that_controls_its_streams_alone(self, declared: Declarations) -> None:
        dags = declared.dags()
        assert form(dags["control-east"])["stream"].schema["enum"] == [None, "orders"]
        task = cast("StreamControlOperator", dags["control-west"].get_task("control"))
        assert (task.cluster_conn_id, task.streams) == ("west", ["sales"])

    def test_a_stream_whose_declaration_is_refused_can_be_controlled(self, declared: Declarations) -> None:
        (declared.folder / "east" / "orders.yaml").write_text("{name: other}")
        assert form(declared.dags()["control-east"])["stream"].schema["enum"] == [None, "orders"]

    def test_it_waits_for_a_person_and_needs_no_unpausing(self, declared: Declarations) -> None:
        dag = declared.dags()["control-east"]
        assert cast("object", dag.schedule) is None
        assert dag.is_paused_upon_creation is False

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("stream", "sales"),
            ("action", "kill"),
            ("reason", None),
            ("reason", "x"),
            ("lasts", "soon"),
            ("begins", "new"),
        ],
    )
    def test_it_refuses_wrong_values(self, declared: Declarations, name: str, value: object) -> None:
        with pytest.raises(ParamValidationError):
            form(declared.dags()["control-east"])[name].resolve(value)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("stream", "orders"), ("action", "stop"), ("lasts", "1h30m"), ("begins", "fresh"), ("begins", "hdfs:///a/b")],
    )
    def test_it_takes_what_the_operator_does(self, declared: Declarations, name: str, value: str) -> None:
        assert form(declared.dags()["control-east"])[name].resolve(value) == value

    def test_every_action_says_what_it_does(self, declared: Declarations) -> None:
        field = form(declared.dags()["control-east"])["action"].schema
        assert set(field["values_display"]) == set(field["enum"]) == set(Action)
