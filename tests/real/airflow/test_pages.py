"""The pages in a browser, on a live Airflow and a live cluster: what a person sees, and what their clicks do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from getpass import getuser
from io import StringIO

import pytest
from playwright.sync_api import Locator, expect
from rich.console import Console

from airflow_kstream.dags.ids import leases_id, stream_id
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.playground import CONNECTION, LANDING, STUCK, Playground, start_playground, streams
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.leases.lease import FileCondition
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.airflow_api import LiveApi, TaskRef
from tests.live.pages.browser import Visit, visit
from tests.live.streams import await_that, look, reconciler
from tests.live.writers.hadoop_says import open_files
from tests.steps import Steps


@dataclass
class Tour(Steps):
    """One visit through the pages."""

    playground: Playground
    visit: Visit
    supervisor: Reconciler

    def row(self, stream: str = "orders") -> Locator:
        return self.visit.page.locator(f"tr[data-stream={stream}]")

    def panel(self, name: str) -> Locator:
        return self.visit.page.get_by_role("region", name=name, exact=True)

    def say(self, action: str, reason: str) -> None:
        """Choose an action in the row's menu, give a reason, and wait until its run is done."""
        page = self.visit.page
        self.row().get_by_role("button", name="Actions for orders").click()
        page.get_by_role("menuitem", name=f"{action} …", exact=True).click()
        dialog = page.get_by_role("dialog")
        button = dialog.get_by_role("button", name=f"{action} orders", exact=True)
        expect(button).to_be_disabled()
        dialog.get_by_label("Reason").fill(reason)
        button.click()
        expect(dialog.get_by_role("status")).to_contain_text("done")
        dialog.get_by_role("button", name="Close").click()


@pytest.fixture(scope="module")
def tour(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
    """The playground with one stream, whose job is ended afterwards."""
    spec = next(spec for spec in streams(minicluster) if spec.name == "orders")
    with ExitStack() as stack:
        console = DemoConsole(Console(file=StringIO()))
        place = start_playground(minicluster, tmp_path_factory.mktemp("pages"), console, stack, only=["orders"])
        supervisor = stack.enter_context(reconciler(minicluster, spec))
        seen = stack.enter_context(visit(place.home.url, place.home.login))
        yield Tour(place, seen, supervisor)
        assert seen.errors == []
        _end(supervisor, spec)


def _end(supervisor: Reconciler, spec: StreamSpec) -> None:
    for _, app in look(supervisor.session, spec).applications:
        if app.alive:
            supervisor.session.yarn.kill(app.id, "the test is over", spec.stop.kill_wait)


class TestTour:
    def test_the_fleet_shows_a_stream_that_works(self, tour: Tour) -> None:
        with tour.step(1):
            tour.visit.open("/")
            tour.visit.page.get_by_role("link", name="Streams", exact=True).first.click()
            expect(tour.row()).to_contain_text("healthy")
            expect(tour.row()).to_contain_text("generation 1")
            expect(tour.row()).to_contain_text("ends in")
            expect(tour.row()).to_contain_text("keep, deferred")

    def test_its_page_tells_its_story(self, tour: Tour) -> None:
        with tour.step(2):
            page = tour.visit.page
            tour.row().get_by_role("link", name="orders", exact=True).click()
            expect(page.get_by_role("heading", name="orders", exact=True)).to_be_visible()
            expect(tour.panel("Until when")).to_contain_text("every")
            expect(tour.panel("Progress")).to_contain_text("stalled after")
            expect(tour.panel("Generations")).to_contain_text("it lives")
            expect(tour.panel("The next submission, word by word")).to_contain_text("--deploy-mode cluster")
            page.get_by_role("link", name="← All streams").click()

    def test_the_tasks_button_leads_there(self, tour: Tour) -> None:
        with tour.step(3):
            api, dag = LiveApi.of(tour.playground.home), stream_id(CONNECTION, "orders")
            task = TaskRef(dag, next(iter(api.dag_run_states(dag))), "keep")
            where = f"{tour.visit.url}/plugin/kstream?cluster={CONNECTION}&stream=orders"
            assert api.extra_links(task)["Streams page"] == where

    def test_a_hold_carries_the_name_and_the_reason(self, tour: Tour) -> None:
        with tour.step(4):
            tour.say("Hold", "Kafka is moved")
            wanted = tour.row().locator("[data-label=Wanted]")
            expect(wanted).to_contain_text("held")
            expect(wanted).to_contain_text("admin")
            expect(wanted).to_contain_text("Kafka is moved")

    def test_a_start_lifts_it(self, tour: Tour) -> None:
        with tour.step(5):
            tour.say("Start", "Kafka is where it belongs")
            expect(tour.row().locator("[data-label=Wanted]")).to_contain_text("running")

    def test_a_restart_brings_the_next_generation(self, tour: Tour) -> None:
        with tour.step(6):
            tour.say("Restart", "a new library")
            expect(tour.row()).to_contain_text("generation 2")
            tour.row().get_by_role("link", name="orders", exact=True).click()
            generations = tour.panel("Generations")
            expect(generations).to_contain_text(f"admin (HDFS user {getuser()}) requested a restart")

    def test_a_stuck_file_is_recovered_from_the_form(self, tour: Tour, minicluster: Minicluster) -> None:
        with tour.step(7):
            page, api = tour.visit.page, LiveApi.of(tour.playground.home)
            file = page.locator(f'tr[data-file="{STUCK}"]')
            await_that(lambda: _found(tour), "a run finds that the file's holder forgot it")
            page.get_by_role("link", name="Files", exact=True).click()
            expect(file).to_contain_text("holder alive without progress")
            file.get_by_role("button", name="Recover …").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Opened at least").fill("1s")
            expect(dialog.get_by_role("button", name="Recover it")).to_be_disabled()
            dialog.get_by_label("Close it although its holder lives").check()
            dialog.get_by_role("button", name="Recover it").click()
            expect(dialog.get_by_role("status")).to_contain_text("done")
            dialog.get_by_role("button", name="Close").click()
            expect(page.locator(f'tr[data-recovered="{STUCK}"]')).to_contain_text("closed")
            assert open_files(minicluster, LANDING) == {}
            assert "success" in api.dag_run_states(leases_id(CONNECTION)).values()

    def test_a_keyboard_is_enough(self, tour: Tour) -> None:
        with tour.step(8):
            page = tour.visit.page
            tour.visit.open()
            button = tour.row().get_by_role("button", name="Actions for orders")
            button.focus()
            page.keyboard.press("Enter")
            expect(page.get_by_role("menuitem", name="Hold …")).to_be_focused()
            page.keyboard.press("ArrowDown")
            expect(page.get_by_role("menuitem", name="Start …", exact=True)).to_be_focused()
            page.keyboard.press("Enter")
            expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)

    def test_it_is_light_and_dark_and_has_the_readers_zone(self, tour: Tour) -> None:
        with tour.step(9):
            for name, dark in (("dark", True), ("light", False)):
                tour.visit.theme(name)
                assert tour.visit.dark is dark, name
            # As Airflow's menu of zones does.
            tour.visit.page.evaluate("localStorage.setItem('timezone', JSON.stringify('Asia/Tokyo'))")
            tour.visit.open()
            expect(tour.visit.page.locator(".ks-head")).to_contain_text("GMT+9")

    def test_it_fits_a_telephone(self, tour: Tour) -> None:
        with tour.step(10):
            page = tour.visit.page
            page.set_viewport_size({"width": 390, "height": 800})
            for path in ("", f"?cluster={CONNECTION}&stream=orders", "?view=files", "?view=tickets"):
                tour.visit.open(f"/plugin/kstream{path}")
                assert tour.visit.overhang <= 0, path


def _found(tour: Tour) -> bool:
    """Start a run over the file, and return whether it saw that the holder lives and makes no progress."""
    api, dag = LiveApi.of(tour.playground.home), leases_id(CONNECTION)
    run = api.trigger_dag_run(dag)
    await_that(lambda: api.dag_run_state(dag, run) in {"success", "failed"}, "a run over the files ends")
    [recover] = [each.ref for each in api.task_instances(dag, run) if each.ref.task_id == "recover"]
    found = api.xcom_entry(recover, "return_value")["findings"]
    return any(file["path"] == STUCK and file["condition"] == FileCondition.LEAKED for file in found)
