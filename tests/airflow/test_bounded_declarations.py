"""What Airflow does with declarations that go beyond what their connection allows, or that hold templates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import UndefinedError

from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.model.streams.stream import OnChange
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.notifications import notifier
from airflow_kstream.notifications.tasks import tell_from_task
from airflow_kstream.operators.streams import ClaimedStreamOperator, SparkStreamOperator
from airflow_kstream.triggers.notifying import Teller
from tests.airflow import notifiers
from tests.airflow.declarations import Declarations
from tests.airflow.notifiers import HERE
from tests.simulated.fleet import CONNECTION, FIELDS, Fleet
from tests.simulated.life import SPEC

OWN = NotifyPolicy(f"{HERE}.Recording", {"name": "own"})
STALLED = Trouble(EventKind.STALLED, "no batch for an hour")
STREAM = "name: orders\ncredentials: {mode: ticket}\napplication: hdfs:///jobs/orders.py\ncheckpoints: [/c]\n"
HOURLY = RestartPolicy(jitter_ratio=0, max_age=timedelta(hours=1))
Bound = Callable[[dict[str, Any] | None], None]

pytestmark = pytest.mark.usefixtures("recording")


@pytest.fixture
def allow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fleet: Fleet) -> Iterator[Bound]:
    """Return a function that gives the connection this bound, None for none."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))

    def given(patterns: dict[str, Any] | None) -> None:
        extra = FIELDS | ({} if patterns is None else {"allow": patterns})
        connection = json.dumps({"conn_type": "kstream", "extra": extra})
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", connection)

    yield given
    notifier.learn(CONNECTION, None)
    notifier._refused.clear()


async def hours(count: float) -> None:
    await asyncio.sleep(count * 3600)


class TestSubmitted:
    def test_a_new_stream_that_asks_for_too_much_is_not_submitted(self, fleet: Fleet, allow: Bound) -> None:
        allow({})
        fleet.specs["orders"] = replace(SPEC, name="orders", checkpoints=("/data/orders",))
        fleet.live(lambda: hours(1))
        assert "does not allow local_files: /jobs/orders.jar" in str(fleet.ended["orders"])
        assert fleet.generations("orders") == []

    def test_one_within_the_bound_is(self, fleet: Fleet, allow: Bound) -> None:
        allow({"local_files": ["/jobs/"]})
        fleet.specs["orders"] = replace(SPEC, name="orders", checkpoints=("/data/orders",))
        fleet.live(lambda: hours(0.1))
        assert [number for number, _ in fleet.generations("orders")] == [1]

    def test_a_stream_that_runs_is_watched_and_restarted_as_it_was(self, fleet: Fleet, allow: Bound) -> None:
        fleet.declare("orders", restart=HOURLY)
        allow({})
        fleet.live(lambda: hours(1.5))
        assert len(fleet.generations("orders")) > 1
        assert not fleet.told("does not allow")

    def test_an_edit_that_asks_for_more_leaves_it_as_it_was_last_submitted(self, fleet: Fleet, allow: Bound) -> None:
        fleet.declare("orders", restart=HOURLY, on_change=OnChange.RESTART)
        allow({})
        fleet.specs["orders"] = replace(fleet.specs["orders"], conf={"spark.a.password": SecretRef("env:HOME")})
        fleet.live(lambda: hours(1.5))
        assert fleet.told("The declaration is refused; orders is kept as it was last submitted")
        assert fleet.told("does not allow secrets: env:HOME")
        assert len(fleet.generations("orders")) > 1
        claim = fleet.run_of("orders").folder.claim(fleet.run_of("orders").folder.names())
        assert claim
        assert claim.spec.conf == {}  # type: ignore[union-attr]


class TestTold:
    def test_a_notifier_that_is_not_allowed_gives_way_to_the_configured_one(self, fleet: Fleet, allow: Bound) -> None:
        allow({"notifiers": ["airflow.providers.*"]})
        fleet.declare("orders", notify=OWN)

        async def story() -> None:
            await hours(0.1)
            async with Teller(CONNECTION, "orders", declared=OWN) as teller:
                await hours(0.1)
                for _ in range(3):
                    teller.saw([STALLED], {EventKind.STALLED})
                    await hours(0.1)
                    teller.saw([], {EventKind.STALLED})
                    await hours(0.1)

        fleet.live(story)
        assert {name for name, _ in notifiers.told} == {"default"}
        assert fleet.told(f"does not allow notifiers: {HERE}.Recording") == 1

    @pytest.mark.parametrize("patterns", [None, {"notifiers": [f"{HERE}.*"]}])
    def test_one_that_is_allowed_tells(self, fleet: Fleet, allow: Bound, patterns: dict[str, Any] | None) -> None:
        allow(patterns)
        fleet.declare("orders", notify=OWN)

        async def story() -> None:
            await hours(0.1)
            async with Teller(CONNECTION, "orders", declared=OWN) as teller:
                await hours(0.1)
                teller.saw([STALLED], {EventKind.STALLED})
                await hours(0.1)

        fleet.live(story)
        assert [name for name, _ in notifiers.told] == ["own"]

    def test_only_the_thread_of_a_notifier_asks_the_disk_where_files_lead(
        self, fleet: Fleet, allow: Bound, tmp_path: Path
    ) -> None:
        """A disk that hangs would stop every watch; a file that leads elsewhere gets no notifier to read it."""
        allow({"notifiers": [f"{HERE}.*"], "local_files": [f"{tmp_path}/"]})
        fleet.declare("orders")
        (tmp_path / "message").symlink_to("/etc/passwd")
        reads = NotifyPolicy(f"{HERE}.Reading", {"name": "own", "template": f"{tmp_path}/message"})

        async def story() -> None:
            await hours(0.1)
            assert notifier.within_at_once(CONNECTION, reads) == reads
            async with Teller(CONNECTION, "orders", declared=reads) as teller:
                await hours(0.1)
                teller.saw([STALLED], {EventKind.STALLED})
                await hours(0.1)

        fleet.live(story)
        assert [name for name, _ in notifiers.told] == ["default"]
        assert fleet.told("does not allow local_files: /etc/passwd") == 1

    def test_a_name_that_no_file_can_have_ends_no_watch(self, allow: Bound) -> None:
        notifier.learn(CONNECTION, Allow(notifiers=(f"{HERE}.*",)))
        assert notifier.within(CONNECTION, replace(OWN, kwargs={"file": "a\0b"})) == NotifyPolicy()

    def test_a_class_that_is_not_allowed_is_not_even_imported(self, allow: Bound) -> None:
        notifier.learn(CONNECTION, Allow())
        assert notifier.within(CONNECTION, NotifyPolicy("no.such.Notifier")) == NotifyPolicy()

    @pytest.mark.parametrize(("patterns", "teller"), [({}, "default"), ({"notifiers": [OWN.notifier]}, "own")])
    def test_what_a_task_finds_is_bounded_too(
        self, fleet: Fleet, allow: Bound, patterns: dict[str, Any], teller: str
    ) -> None:
        allow(patterns)
        tell_from_task(CONNECTION, OWN, [STALLED], {EventKind.STALLED}, "a task")
        assert [name for name, _ in notifiers.told] == [teller]

    def test_a_connection_that_was_never_read_allows_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        notifier.look_at("nowhere")
        assert notifier.within("nowhere", OWN) == NotifyPolicy()

    @pytest.mark.parametrize(("patterns", "told"), [({}, []), (None, ["own"])])
    def test_a_callback_is_made_when_it_is_called_and_only_if_it_is_allowed(
        self, allow: Bound, patterns: dict[str, Any] | None, told: list[str]
    ) -> None:
        allow(patterns)
        text = {**OWN.kwargs, "text": "it failed"}
        notifier.callback(CONNECTION, replace(OWN, kwargs=text), "airflow.callbacks.on_failure.")({"ti": object()})
        assert [name for name, _ in notifiers.told] == told

    @pytest.mark.parametrize(
        "template",
        [
            "{{ conn.db.password }}",
            "{{ var.value.x }}",
            "{{ ti.get_template_context().conn.db.password }}",
            "{{ macros }}",
        ],
    )
    def test_templates_of_a_bounded_declaration_show_no_secret(self, allow: Bound, template: str) -> None:
        allow({"notifiers": [OWN.notifier]})
        secret = SimpleNamespace(db=SimpleNamespace(password="s3cret"), value=SimpleNamespace(x="s3cret"))
        ti = SimpleNamespace(task_id="keep", get_template_context=lambda: SimpleNamespace(conn=secret))
        context: Any = {
            "ti": ti,
            "conn": secret,
            "var": secret,
            "macros": "s3cret",
            "exception": ValueError("it failed"),
        }
        text = {**OWN.kwargs, "text": f"{{{{ ti.task_id }}}}: {{{{ exception }}}} {template}"}
        told = notifier.callback(CONNECTION, replace(OWN, kwargs=text), "airflow.callbacks.on_failure.")
        with suppress(UndefinedError):
            told(context)
        assert "s3cret" not in str(notifiers.told)

    def test_templates_of_a_bounded_declaration_show_which_task_failed_and_why(self, allow: Bound) -> None:
        allow({"notifiers": [OWN.notifier]})
        context: Any = {"ti": SimpleNamespace(task_id="keep"), "exception": ValueError("it failed")}
        text = {**OWN.kwargs, "text": "{{ ti.task_id }}: {{ exception }}"}
        notifier.callback(CONNECTION, replace(OWN, kwargs=text), "airflow.callbacks.on_failure.")(context)
        assert notifiers.told == [("own", "keep: it failed")]


class TestTemplates:
    @pytest.mark.parametrize(
        ("line", "place"),
        [
            ('arguments: ["{{ conn.db.password }}"]', "arguments.0"),
            ('arguments: [a, "{% for x in y %}"]', "arguments.1"),
            ('arguments: ["{# a #}"]', "arguments.0"),
            ('conf: {spark.a: "x{{ ds }}"}', "conf.spark.a"),
            ('conf: {"spark.{{ ds }}": x}', "a name in conf"),
            ('deploy: {environment: {A: "{{ var.value.x }}"}}', "deploy.environment.A"),
            ('airflow: {queue: "{{ ds }}"}', "airflow.queue"),
        ],
    )
    def test_one_in_a_declaration_is_refused_by_name_and_its_stream_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, place: str
    ) -> None:
        (tmp_path / "prod").mkdir()
        (tmp_path / "prod" / "orders.yaml").write_text(STREAM + line)
        keep = Declarations("streams", tmp_path, monkeypatch).dags()["stream-prod.orders"].get_task("keep")
        assert isinstance(keep, ClaimedStreamOperator)
        assert f"{place}: a template" in keep.refusal
        assert "a secret as {secret: conn:ID}" in keep.refusal

    def test_what_notifiers_get_may_be_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told = f'{{notifier: {HERE}.Recording, kwargs: {{text: "{{{{ event.words }}}}"}}}}'
        (tmp_path / "prod").mkdir()
        text = f"{STREAM}notify: {told}\nairflow: {{notify: {told}, callbacks: {{on_failure: {told}}}}}\n"
        (tmp_path / "prod" / "orders.yaml").write_text(text)
        keep = Declarations("streams", tmp_path, monkeypatch).dags()["stream-prod.orders"].get_task("keep")
        assert type(keep) is SparkStreamOperator

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("leases", 'paths: ["/data/{{ ds }}"]'),
            ("tickets", 'principals: [{principal: "{{ ds }}@R", keytab: /k}]'),
            ("tokens", 'files: ["/run/{{ conn.db.password }}"]'),
        ],
    )
    def test_one_in_another_kind_of_declaration_is_refused_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
    ) -> None:
        [dag] = Declarations(kind, tmp_path, monkeypatch).dags_of(text).values()
        assert "refused" in dag.tags
        assert "a template" in str(dag.description)
