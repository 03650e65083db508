"""The pages on a real API server, with the roles of its FAB auth manager, and in a browser; what was stored is planted.

One server and one browser for all of them. Each rule of rights is in test_readable.py. No cluster runs: nothing is
carried out.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

import pytest
import requests
from fastapi.routing import APIRoute
from playwright.sync_api import Route, expect
from starlette.routing import Mount

from airflow_kstream.dags import STUBS
from airflow_kstream.demo.airflow_api import AirflowApi, Login
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.supervisor import ProcessSupervisor
from airflow_kstream.model.errors import Denied, InvalidInput, Unavailable
from airflow_kstream.plugin.api import app
from tests.live.airflow_api import LiveApi
from tests.live.pages.browser import Visit
from tests.live.pages.browser import visit as visit_in_browser
from tests.live.pages.fleets import starving
from tests.live.pages.planted import PASSWORD, planted_clusters, planted_stream
from tests.live.pages.stored import healthy, store
from tests.live.streams import await_that

STREAMS = {"east": "orders", "west": "sales"}
# One more is declared, and nobody looks at it.
UNSEEN = "west", "unseen"
PASSWORDS = {user: secrets.token_urlsafe(12) for user in ("viewer", "op", "admin", "eve of east", "nobody")}
FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
METHODS = ("GET", "POST")
ROUTES = [route for route in app.routes if isinstance(route, APIRoute)]
# What each visitor of a page gets: who is not known, who may not read, and who may.
VISITORS = {"anonymous": 401, "nobody": 403, "viewer": 200, "eve of east": 200}
# A token that the server does not take would look like a right that is missing.
REFUSALS = {"anonymous": "Not authenticated", "nobody": "Forbidden"}
# A route asks for some of these; the others do it no harm.
QUERY = {"cluster": "east", "stream": "orders"}
TICKETS = {"tickets_etl@EXAMPLE.COM": {"principal": "etl@EXAMPLE.COM"}}

# What an administrator clicks together: a role with the rights on one DAG, and a user for each role. The DAGs are
# parsed once: a processor would go on with it.
ROLES = """
import json
import sys

from airflow.cli.cli_parser import get_parser
from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

parse = get_parser().parse_args(["dags", "reserialize"])
parse.func(parse)
passwords = json.load(sys.stdin)
with get_application_builder() as builder:
    manager = builder.sm
    east = manager.add_role("East")
    for permission in manager.find_role("Viewer").permissions:
        if permission.resource.name not in ("DAGs", "DAG Runs"):
            manager.add_permission_to_role(east, permission)
    rights = [("can_read", "DAG:control-east"), ("can_edit", "DAG:control-east")]
    rights += [("can_read", "DAG:stream-east.orders")]
    rights += [("can_read", "DAG Run:control-east"), ("can_create", "DAG Run:control-east")]
    for right in rights:
        manager.add_permission_to_role(east, manager.create_permission(*right))
    manager.add_role("Nobody")
    roles = {name.lower(): name for name in ("Viewer", "Op", "Admin", "Nobody")} | {"eve of east": "East"}
    for user, role in roles.items():
        mail = user.replace(" ", "-") + "@example.com"
        assert manager.add_user(user, user, role, mail, manager.find_role(role), password=passwords[user])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowHome]:
    """The API server of an Airflow whose DAGs were parsed once."""
    root = tmp_path_factory.mktemp("rights")
    (root / "dags").mkdir()
    shutil.copy(STUBS / "kstream_streams.py", root / "dags")
    for connection, stream in (*STREAMS.items(), UNSEEN):
        declaration = {"credentials": {"mode": "ticket"}, "application": "/jobs/it.py", "checkpoints": ["/data/it"]}
        file = root / "streams" / connection / f"{stream}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(declaration))
    shutil.copy(STUBS / "kstream_leases.py", root / "dags")
    (root / "leases").mkdir()
    (root / "leases/east.yaml").write_text(json.dumps({"paths": ["/data/landing"], "min_age": "90s"}))
    folders = {f"{kind}_folder": str(root / kind) for kind in ("streams", "leases")}
    ours = {**folders, "docs_url": "https://docs.example.com"}
    settings = {"core": {"auth_manager": FAB}, "kstream": ours}
    home = AirflowHome(root / "home", root / "dags", overrides=settings)
    home.prepare()
    with ProcessSupervisor() as supervisor:
        for component in home.components():
            if component.name == "api-server":
                supervisor.start(component)
        with as_user(home, "admin") as admin:
            # Airflow makes its own roles as it starts.
            await_that(lambda: answers(admin), "the API server answers")
            _in_airflow(home, ROLES, json.dumps(PASSWORDS))
            assert {"control-east", "control-west"} <= set(admin.dag_ids())
        fleet = [
            healthy("east", "orders"),
            healthy("west", "sales"),
            planted_stream("east", "planted"),
            starving("west", "counts"),
        ]
        store(home, fleet, {"west": {"tickets-west": TICKETS}, "east": planted_clusters()})
        yield home


def _in_airflow(home: AirflowHome, script: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], env=home.environment(), input=told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


def answers(api: AirflowApi) -> bool:
    try:
        api.health()
    except Unavailable:
        return False
    return True


@contextmanager
def as_user(home: AirflowHome, user: str) -> Iterator[LiveApi]:
    with closing(LiveApi(home.url, Login(user, PASSWORDS[user]))) as api:
        yield api


def hold(api: LiveApi, connection: str, **form: Any) -> dict[str, Any]:
    """Fill in the form of a folder's control DAG; return the run."""
    dag_id = f"control-{connection}"
    word = {"action": "hold", "stream": STREAMS[connection], "reason": "Kafka is moved", **form}
    return dict(api.call("GET", f"/dags/{dag_id}/dagRuns/{api.trigger_dag_run(dag_id, word)}"))


@pytest.mark.parametrize(
    ("user", "connection", "may"),
    [
        ("viewer", "east", False),
        ("eve of east", "east", True),
        ("eve of east", "west", False),
        ("op", "west", True),
    ],
)
def test_airflows_roles_decide_who_controls_the_streams_of_which_folder(
    server: AirflowHome, user: str, connection: str, may: bool
) -> None:
    with as_user(server, user) as api:
        if may:
            assert hold(api, connection)["triggering_user_name"] == user
        else:
            with pytest.raises(Denied, match=r"\b403\b"):
                hold(api, connection)


def test_a_user_with_rights_on_one_folder_sees_no_other(server: AirflowHome) -> None:
    with as_user(server, "eve of east") as api:
        assert api.dag_ids() == ["control-east", "stream-east.orders"]


@pytest.mark.parametrize("form", [{"stream": "sales"}, {"action": "kill"}])
def test_the_server_refuses_a_form_that_names_another_folders_stream(server: AirflowHome, form: dict[str, Any]) -> None:
    with as_user(server, "eve of east") as api, pytest.raises(InvalidInput, match=r"\b400\b"):
        hold(api, "east", **form)


def test_airflows_audit_log_keeps_who_said_what(server: AirflowHome) -> None:
    with as_user(server, "op") as api:
        run = hold(api, "west", reason="the brokers are moved")["dag_run_id"]
    with as_user(server, "admin") as admin:
        entries = admin.call("GET", "/eventLogs?dag_id=control-west&event=trigger_dag_run&order_by=-when")["event_logs"]
    newest = entries[0]
    assert newest["owner"] == "op"
    assert "the brokers are moved" in newest["extra"], run


# Airflow takes a third of a second for each password.
@cache
def token_of(url: str, visitor: str) -> dict[str, str]:
    """Return what a visitor's requests carry."""
    if visitor == "anonymous":
        return {}
    login = {"username": visitor, "password": PASSWORDS[visitor]}
    answer = requests.post(f"{url}/auth/token", json=login, timeout=60)
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}


def visit(server: AirflowHome, visitor: str, path: str, method: str = "GET") -> requests.Response:
    headers, where = token_of(server.url, visitor), f"{server.url}/kstream{path}"
    return requests.request(method, where, headers=headers, params=QUERY, timeout=60, allow_redirects=False)


def is_html(answer: requests.Response) -> bool:
    return "html" in answer.headers.get("content-type", "")


@pytest.mark.parametrize("visitor", VISITORS)
def test_each_page_asks_who_visits_and_what_they_may(server: AirflowHome, visitor: str) -> None:
    assert ROUTES, "the app has no routes"
    for route in ROUTES:
        for method in METHODS:
            answer = visit(server, visitor, route.path, method)
            expected = {VISITORS[visitor]} if method in route.methods else {401, 403, 405}
            assert answer.status_code in expected, f"{method} {route.path} as {visitor}"
            if method == "GET":
                assert REFUSALS.get(visitor, "") in answer.text, f"{route.path} as {visitor}"
            # A prefix that Airflow refuses answers 200 with its own page.
            assert not is_html(answer), f"{method} {route.path} as {visitor} is a page of Airflow"


def test_nothing_but_the_bundle_is_public(server: AirflowHome) -> None:
    mounted = [route for route in app.routes if isinstance(route, Mount)]
    assert [route.path for route in mounted] == ["/static"]
    assert len(ROUTES) + len(mounted) == len(app.routes)
    bundle = visit(server, "anonymous", "/static/kstream.js")
    assert (bundle.status_code, is_html(bundle)) == (200, False)
    for path in ("/openapi.json", "/docs", "/static/../api.py", "/api"):
        assert visit(server, "admin", path).status_code == 404, path


def test_a_user_sees_the_streams_whose_dag_they_may_read(server: AirflowHome) -> None:
    everything = visit(server, "viewer", "/api/fleet").text
    assert {"orders", "sales", "planted", "counts", "unseen"} == {
        row["stream"] for row in json.loads(everything)["streams"]
    }
    for route in ROUTES:
        seen = visit(server, "eve of east", route.path).text
        assert "sales" not in seen, route.path
        assert "west" not in seen, route.path
        assert "etl@" not in seen, route.path
    assert [row["stream"] for row in visit(server, "eve of east", "/api/fleet").json()["streams"]] == ["orders"]


@pytest.mark.parametrize(("visitor", "may"), [("viewer", False), ("op", True), ("eve of east", True)])
def test_a_page_offers_what_the_user_may_do(server: AirflowHome, visitor: str, may: bool) -> None:
    clusters = {cluster["id"]: cluster for cluster in visit(server, visitor, "/api/fleet").json()["clusters"]}
    assert clusters["east"]["form"] == {"dag": "control-east", "may": may}


def test_an_event_links_its_entry_of_the_runbook_and_what_has_none_does_not(server: AirflowHome) -> None:
    streams = {row["stream"]: row for row in visit(server, "viewer", "/api/fleet").json()["streams"]}
    linked = {each["kind"]: each["runbook"] for row in streams.values() for each in row["findings"]}
    assert linked["restart_blocked"] == "https://docs.example.com/runbook.html#restart-blocked"
    assert linked["paused"] == ""
    row = visit(server, "viewer", "/api/stream").json()["row"]
    assert row["findings"] == streams["orders"]["findings"]


@pytest.mark.parametrize("route", [route.path for route in ROUTES])
def test_no_answer_has_a_password_or_a_control_character(server: AirflowHome, route: str) -> None:
    where, stream = f"{server.url}/kstream{route}", {"cluster": "east", "stream": "planted"}
    answer = requests.get(where, headers=token_of(server.url, "admin"), params=stream, timeout=60)
    assert "<img" in answer.text, "something was planted in each"
    assert PASSWORD not in answer.text
    assert not re.search(r"\\u00[01]", answer.text), "JSON would show one so"


@pytest.fixture(scope="module")
def window(server: AirflowHome) -> Iterator[Visit]:
    with visit_in_browser(server.url, Login("admin", PASSWORDS["admin"])) as seen:
        yield seen
        assert seen.errors == []


PAGES = {
    "the fleet": ("", "planted"),
    "a stream": ("?cluster=east&stream=planted", "Generations"),
    "files": ("?view=files", "/data/landing"),
    "tickets": ("?view=tickets", "etl@EXAMPLE.COM"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_stored_with_markup_as_text_and_runs_none(window: Visit, page: str) -> None:
    query, words = PAGES[page]
    window.open(f"/plugin/kstream{query}")
    shown = window.page.locator(".ks")
    window.page.get_by_text("onerror=").first.wait_for()
    expect(shown).to_contain_text(words)
    assert window.page.evaluate("() => window.planted ?? null") is None
    assert window.page.locator(".ks img, .ks a[href^='javascript:']").count() == 0
    assert PASSWORD not in shown.inner_text()


def test_a_declared_stream_is_not_seen_before_its_first_look(window: Visit) -> None:
    window.open()
    row = window.page.locator("tr[data-stream=unseen]")
    expect(row).to_contain_text("not seen")
    expect(row).to_contain_text("not looked at yet")
    expect(window.page.locator("tr[data-findings-of=unseen]")).to_contain_text("unpause its DAG, stream-west.unseen")
    window.open("/plugin/kstream?cluster=west&stream=unseen")
    expect(window.page.locator(".ks")).to_contain_text("Its DAG is paused")


def test_a_job_for_which_nothing_works_says_so_and_since_when(window: Visit) -> None:
    window.open()
    expect(window.page.locator("tr[data-stream=counts]")).to_contain_text("No TaskManager works for it")
    told = window.page.locator("tr[data-findings-of=counts]")
    expect(told).to_contain_text(re.compile(r"can't be replaced\. Since .+, 1\sh(.+)? ago\."))
    expect(told).to_contain_text("What now: nothing, if a person is there")
    window.open("/plugin/kstream?cluster=west&stream=counts")
    shown = window.page.locator(".ks")
    expect(shown).to_contain_text("checkpoint 63")
    expect(shown).not_to_contain_text("No batch is committed yet")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("east/orders", "Generations"),
        ("east/nobody", "There is no such stream"),
        ("east", "There is no such page"),
        ("east/orders/1", "There is no such page"),
        ("%", "There is no such page"),
        ("east/%", "There is no such page"),
        ("east/Your session ended: call 555 0100", "There is no such page"),
    ],
)
def test_a_path_below_the_page_names_a_stream_or_nothing(window: Visit, path: str, words: str) -> None:
    window.page.goto(f"{window.url}/plugin/kstream/{path}")
    shown = window.page.locator(".ks")
    expect(shown).to_contain_text(words)
    expect(shown).not_to_contain_text("555")


def test_only_a_streams_page_says_that_there_is_no_such_stream(window: Visit) -> None:
    files = "**/kstream/api/files"
    window.page.route(files, lambda route: route.fulfill(status=404, json={}))
    window.open("/plugin/kstream?view=files")
    expect(window.page.get_by_role("alert")).to_contain_text("failed (404)")
    window.page.unroute(files)


@pytest.mark.parametrize(("wanted", "words"), [("running", "restart due"), ("stopped", "stop due")])
def test_a_stop_that_is_due_says_whether_anything_follows(window: Visit, wanted: str, words: str) -> None:
    def told(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        (orders,) = (row for row in body["streams"] if (row["cluster"], row["stream"]) == ("east", "orders"))
        orders["state"], orders["desired"]["state"] = "stop", wanted
        route.fulfill(response=answer, json=body)

    fleet = "**/kstream/api/fleet"
    window.page.route(fleet, told)
    window.open()
    expect(window.page.locator("tr[data-stream=orders]").first).to_contain_text(words)
    window.page.unroute(fleet)


def test_files_that_nobody_can_judge_are_not_called_well(window: Visit) -> None:
    window.open("/plugin/kstream?view=files")
    state = window.page.locator(".ks-state").first
    expect(state).to_contain_text("1 can't be judged")
    expect(state).not_to_contain_text("none stuck")


def test_the_form_of_a_recovery_begins_with_the_age_that_is_declared(window: Visit) -> None:
    window.open("/plugin/kstream?view=files")
    window.page.get_by_role("button", name="Recover …").first.click()
    expect(window.page.get_by_role("dialog").get_by_label("Only if it was opened")).to_have_value("1m30s")
    window.page.keyboard.press("Escape")
