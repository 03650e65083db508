"""What a DAG's author imports from the package itself, what the provider lists, and the example DAGs."""

from __future__ import annotations

import inspect
import shutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import BaseHook, BaseNotifier, BaseOperator
from airflow.triggers.base import BaseEventTrigger

import airflow_kstream
from airflow_kstream import example_dags
from airflow_kstream.get_provider_info import get_provider_info
from tests.airflow.test_examples import FACES, example_of
from tests.airflow.test_imports import HEAVY, printed

EXAMPLES = Path(next(iter(example_dags.__path__)))
PUBLIC = {name: getattr(airflow_kstream, name) for name in dir(airflow_kstream) if not name.startswith("_")}
# Of the shipped DAGs, and what others derive from.
INTERNAL = {
    *(
        "KstreamOperator",
        "TellingOperator",
        "AwaitingSensor",
        "UnendingOperator",
        "DeclaredStreamOperator",
        "DeclaredCallback",
    ),
    *("ClaimedStreamOperator", "VanishedStreamsOperator", "PolicyEditsOperator"),
    *("FleetLookOperator", "NeedsAHandOperator", "TokenLookOperator"),
}
AIRFLOWS = BaseOperator, BaseHook, BaseNotifier, BaseEventTrigger
OPENED = """
import socket, sys
def refuse(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "subprocess.Popen"}:
        raise AssertionError(event)
from airflow.dag_processing.dagbag import DagBag
sys.addaudithook(refuse)
bag = DagBag(sys.argv[1], bundle_path=sys.argv[1], bundle_name="examples", known_pools=set())
print(bag.import_errors, *sorted(bag.dags))
"""


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_is_a_class_with_an_example(name: str) -> None:
    kind = PUBLIC[name]
    assert inspect.isclass(kind)
    assert kind.__name__ == name
    assert name in dir(airflow_kstream)
    assert example_of(kind), "what it is for shows in an example"


def test_an_import_of_all_names_gets_the_public_ones_alone() -> None:
    names: dict[str, object] = {}
    exec("from airflow_kstream import *", names)
    assert names.keys() - {"__builtins__"} == PUBLIC.keys()


def test_all_that_people_use_is_public_and_nothing_internal_is() -> None:
    faces = {kind.__name__ for kind in FACES if issubclass(kind, AIRFLOWS)}
    assert faces - PUBLIC.keys() == INTERNAL & faces
    assert not INTERNAL & PUBLIC.keys()


def test_the_provider_lists_the_modules_of_what_is_public_and_no_others() -> None:
    info = get_provider_info()
    kinds = ("operators", "sensors", "triggers", "hooks")
    listed = {module for kind in kinds for part in info[kind] for module in part["python-modules"]}
    of_airflow = [kind for kind in PUBLIC.values() if issubclass(kind, AIRFLOWS)]
    notifiers = {kind for kind in of_airflow if issubclass(kind, BaseNotifier)}
    assert listed == {kind.__module__ for kind in of_airflow if kind not in notifiers}
    assert info["notifications"] == [f"{kind.__module__}.{kind.__name__}" for kind in notifiers]
    assert all(isinstance(import_module(module), ModuleType) for module in info["bundles"][0]["python-modules"])


@pytest.mark.parametrize("name", ["SparkStreamOperatr", "StreamTrigger", "_Private", "__path_of__"])
def test_what_is_not_public_is_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'airflow_kstream' has no attribute '{name}'"):
        getattr(airflow_kstream, name)


def test_the_package_and_its_declarations_are_imported_without_airflow() -> None:
    program = f"""
import sys
from airflow_kstream import StreamSpec, KafkaPolicy, SecretRef, TicketCredentials
print(sorted({{"airflow", *{HEAVY}}} & sys.modules.keys()))
import airflow_kstream
for name in dir(airflow_kstream):
    getattr(airflow_kstream, name)
print(sorted(set({HEAVY}) & sys.modules.keys()))
"""
    assert [line for line in printed(program) if line.startswith("[")] == ["[]", "[]"]


def test_each_example_is_read_without_a_network_and_makes_its_dags() -> None:
    """The folder's makes none where it lies: its ids are those of the DAGs of who uses it."""
    [line] = [line for line in printed(OPENED, str(EXAMPLES)) if "example_kstream" in line]
    names = ("cluster", "files", "flink_stream", "progress", "stream", "tickets", "token_push", "triage")
    assert line == " ".join(["{}", *(f"example_kstream_{name}" for name in names)])


def test_airflow_shows_the_examples_where_it_shows_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "True")
    bundles = {bundle.name: bundle.path for bundle in DagBundlesManager().get_all_dag_bundles()}  # type: ignore[no-untyped-call]
    assert bundles["airflow-kstream-example-dags"] == EXAMPLES


def test_the_example_of_a_folder_makes_its_dags_where_somebody_copied_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared, dags = tmp_path / "streams" / "example", tmp_path / "dags"
    declared.mkdir(parents=True)
    dags.mkdir()
    shutil.copy(EXAMPLES / "folder.py", dags)
    _, _, yaml = (EXAMPLES / "folder.py").read_text().partition("A file there:\n")
    (declared / "orders.yaml").write_text(yaml.partition("\n\n`")[0].replace("\n    ", "\n"))
    monkeypatch.setenv("AIRFLOW__KSTREAM__STREAMS_FOLDER", str(tmp_path / "streams"))
    bag = DagBag(str(dags), bundle_path=dags, bundle_name="dags")
    assert bag.import_errors == {}
    assert "stream-example.orders" in bag.dags
    assert "refused" not in bag.dags["stream-example.orders"].tags


def test_airflow_shows_no_error_of_the_plugin_however_it_looks_for_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
from airflow import plugins_manager, settings
settings.LAZY_LOAD_PROVIDERS = False
plugins, errors = plugins_manager._get_plugins()
print([plugin.name for plugin in plugins].count("kstream"), errors)
"""
    assert printed(program)[-1] == "1 {}"
