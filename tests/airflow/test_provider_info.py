"""The provider as Airflow sees it: entry point data, connection form, links."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from airflow.cli.cli_parser import get_parser
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag

import airflow_kstream
from airflow_kstream import settings
from airflow_kstream.get_provider_info import get_provider_info
from airflow_kstream.supervise.clusters.connection import ConnectionFields

SHIPPED = ("streams", "leases", "tickets", "tokens")
CONNECTION_SECRETS = ("keytab", "password", "token", "secret")


@pytest.fixture(scope="module")
def info() -> dict[str, Any]:
    return get_provider_info()


@pytest.fixture(scope="module")
def connection_type(info: dict[str, Any]) -> dict[str, Any]:
    [connection_type] = info["connection-types"]
    return dict(connection_type)


@pytest.fixture
def airflow_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command of Airflow, in this process, and returns what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> str:
        arguments = get_parser().parse_args(words)
        arguments.func(arguments)
        return capsys.readouterr().out

    return run


def schema(name: str) -> Any:
    path = importlib.metadata.distribution("apache-airflow-core").locate_file(f"airflow/{name}")
    return json.loads(Path(str(path)).read_text())


def faults(value: Any, schema: Any) -> list[str]:
    """Return what the schema refuses of the value."""
    return [error.message for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(value)]


def test_it_is_valid_at_run_time(info: dict[str, Any]) -> None:
    assert faults(info, schema("provider_info.schema.json")) == []


def test_it_is_valid_as_a_provider_yaml(info: dict[str, Any]) -> None:
    # Only this schema knows the connection form; its other requirements concern Airflow's own releases.
    release = {"state": "ready", "source-date-epoch": 1, "versions": ["0.1.0"]}

    assert faults(info | release, schema("provider.yaml.schema.json")) == []


def test_it_names_its_own_distribution(info: dict[str, Any]) -> None:
    distribution = importlib.metadata.distribution("airflow-kstream")

    assert distribution.metadata["Name"] == info["package-name"]
    assert [point.value for point in distribution.entry_points if point.group == "apache_airflow_provider"] == [
        "airflow_kstream.get_provider_info:get_provider_info"
    ]


def test_reading_it_imports_nothing_heavy() -> None:
    program = (
        "import sys; from airflow_kstream.get_provider_info import get_provider_info; get_provider_info();"
        "print([name for name in ('airflow', 'pydantic', 'requests', 'gssapi') if name in sys.modules])"
    )

    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_the_integration_of_each_module_is_declared(info: dict[str, Any]) -> None:
    declared = {integration["integration-name"] for integration in info["integrations"]}
    used = {entry["integration-name"] for part in ("operators", "triggers", "hooks") for entry in info[part]}

    assert used == declared


def test_every_field_of_the_form_is_explained(connection_type: dict[str, Any]) -> None:
    for name, field in connection_type["conn-fields"].items():
        assert field["label"], name
        assert field["description"].endswith("."), name


def test_the_form_has_every_field_that_a_connection_may_hold(connection_type: dict[str, Any]) -> None:
    in_the_form = {*connection_type["conn-fields"], "keytab"}  # the keytab is the password field

    assert in_the_form == set(ConnectionFields.__dataclass_fields__)


def test_only_what_every_cluster_needs_is_required(connection_type: dict[str, Any]) -> None:
    required = [name for name, field in connection_type["conn-fields"].items() if "null" not in field["schema"]["type"]]

    assert required == ["principal", "state_dir"]


@pytest.mark.parametrize("principal", ["watcher@EXAMPLE.COM", "watcher/host.example.com@EXAMPLE.COM"])
def test_the_form_accepts_a_principal(connection_type: dict[str, Any], principal: str) -> None:
    assert faults(principal, connection_type["conn-fields"]["principal"]["schema"]) == []


@pytest.mark.parametrize("principal", ["watcher", "watcher/@R", "a/b/c@R", "wat cher@R", "watcher@R@R", "@R"])
def test_the_form_refuses_what_is_no_principal(connection_type: dict[str, Any], principal: str) -> None:
    assert faults(principal, connection_type["conn-fields"]["principal"]["schema"]) != []


def test_the_keytab_is_where_airflow_masks_it(connection_type: dict[str, Any]) -> None:
    behaviour = connection_type["ui-field-behaviour"]

    assert behaviour["relabeling"]["password"] == "Keytab (base64)"
    assert "password" not in behaviour["hidden-fields"]
    assert not [name for name in connection_type["conn-fields"] if name in CONNECTION_SECRETS]


def test_airflow_shows_the_provider_in_full(airflow_command: Callable[..., str]) -> None:
    # A table for people is rendered as rich markup, which takes "[/instance]" in a description for a closing tag. Its
    # columns are so narrow that they break the package's name.
    assert "Kerberized" in airflow_command("providers", "get", "airflow-kstream", "--full")


def test_airflow_shows_the_links(airflow_command: Callable[..., str], info: dict[str, Any]) -> None:
    shown = json.loads(airflow_command("providers", "links", "--output", "json"))

    assert set(info["extra-links"]) <= {link["extra_link_class_name"] for link in shown}


def test_airflow_lists_every_setting_with_its_words(airflow_command: Callable[..., str], info: dict[str, Any]) -> None:
    options = info["config"]["kstream"]["options"]
    shown = airflow_command("config", "list", "--section", "kstream", "--include-descriptions", "--include-examples")

    for name, option in options.items():
        assert f"# Example: {name} = {option['example']}" in shown, name
        assert option["description"].splitlines()[0] in shown, name
        assert option["version_added"] == airflow_kstream.__version__, name


def test_the_environment_sets_what_airflow_says_and_what_our_settings_read(
    airflow_command: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__STREAMS_FOLDER", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__KSTREAM__RETRIES", "3")

    assert airflow_command("config", "get-value", "kstream", "retries").split()[-1] == "3"
    assert (settings.folder("streams_folder"), settings.folder("leases_folder")) == (tmp_path, None)
    assert settings.whole_number("retries") == 3
    durations = settings.duration("retry_delay"), settings.duration("ensure_every")
    assert durations == (timedelta(minutes=1), timedelta(minutes=5))


def test_airflow_finds_the_shipped_dags_in_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own loader, which looks for "airflow" and "dag" in a file before it reads it."""
    (tmp_path / "streams" / "prod").mkdir(parents=True)
    (tmp_path / "streams" / "prod" / "orders.yaml").write_text(
        "{name: orders, credentials: {mode: ticket}, application: /jobs/orders.py, checkpoints: [/c]}"
    )
    for kind, text in (("leases", "paths: [/data]"), ("tickets", ""), ("tokens", "users: [etl]")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "prod.yaml").write_text(text)
    listed = {"name": "kstream", "classpath": "airflow_kstream.dags.factory.KstreamDagBundle", "kwargs": {}}
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([listed]))
    for kind in SHIPPED:
        monkeypatch.setenv(f"AIRFLOW__KSTREAM__{kind.upper()}_FOLDER", str(tmp_path / kind))

    [bundle] = DagBundlesManager().get_all_dag_bundles()  # type: ignore[no-untyped-call]
    bag = DagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)

    names = "control doctor fleet housekeeping keytabs leases stream tickets tokens undeclared"
    dags = [f"{name}-prod{'.orders' if name == 'stream' else ''}" for name in names.split()]
    assert (bundle.name, sorted(bag.dags), bag.import_errors) == ("kstream", dags, {})
    assert {dag.relative_fileloc for dag in bag.dags.values()} == {f"kstream_{kind}.py" for kind in SHIPPED}
