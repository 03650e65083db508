"""A declaration that can't be read leaves the DAGs of all others alone, in each shipped DAG file."""

from __future__ import annotations

import contextlib
import gc
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_kstream.dags import STUBS
from airflow_kstream.dags.factory import dags_of_folder
from airflow_kstream.dags.ids import Family, stream_id
from airflow_kstream.hooks.kerberos import ticket_declaration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.operators.streams import ClaimedStreamOperator, SparkStreamOperator
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from tests.airflow.declarations import Declarations
from tests.temporary import without_roots_rights

STREAM = "{name: orders, credentials: {mode: ticket}, application: /jobs/orders.py, checkpoints: [/c]}"
KINDS = ("streams", "leases", "tickets", "tokens")


@pytest.mark.parametrize(
    ("kind", "folder", "good", "whole"),
    [
        ("streams", "prod", STREAM, "stream-prod.orders"),
        ("leases", "", "paths: [/data]", "leases-orders"),
        ("tickets", "", "", "tickets-orders"),
        ("tokens", "", "users: [etl]", "tokens-orders"),
    ],
)
def test_what_is_no_text_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, folder: str, good: str, whole: str
) -> None:
    declarations = tmp_path / folder
    declarations.mkdir(exist_ok=True)
    (declarations / "orders.yaml").write_text(good)
    (declarations / "latin.yaml").write_bytes("# für die Nacht".encode("latin-1"))
    (declarations / "folder.yaml").mkdir()
    names = Declarations(kind, tmp_path, monkeypatch).dags()
    assert whole in names
    assert "harms no other" in str(names[whole].doc_md)
    assert len([dag for dag in names.values() if "refused" in dag.tags]) == 2


def test_names_that_are_no_dag_id_are_refused_alone_and_editors_files_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".#prod.yaml").symlink_to("ada@nowhere:1")
    for name in ("prod", "my cluster", "a" * 240):
        (tmp_path / f"{name}.yaml").write_text("paths: [/data]")
    dags = Declarations("leases", tmp_path, monkeypatch).dags()
    refused = sorted(name for name in dags if name.startswith("refused-"))
    assert refused == ["refused-leases-my_cluster"]
    assert "leases-my cluster" in str(dags[refused[0]].description)
    assert {"leases-prod", f"leases-{'a' * 240}"} < dags.keys()


def test_what_is_shown_of_a_refusal_drives_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [dag] = Declarations("leases", tmp_path, monkeypatch).dags_of(r'{paths: [/data], "b\0\e[31m": x}').values()
    for shown in (dag.dag_display_name, str(dag.description), str(dag.doc_md)):
        assert r"x1b[31m" in shown
        assert not {"\0", "\x1b"} & set(shown)


def test_no_garbage_is_collected_while_declarations_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Airflow process has a million objects, and a fleet makes the collector look at all of them many times."""
    (tmp_path / "prod.yaml").write_text("paths: [/data]")
    monkeypatch.setenv("AIRFLOW__KSTREAM__LEASES_FOLDER", str(tmp_path))
    collects = []

    def dags_of(declaration: Path, text: str) -> list[DAG]:
        collects.append(gc.isenabled())
        raise KeyboardInterrupt

    assert gc.isenabled()
    with pytest.raises(KeyboardInterrupt):
        dags_of_folder("leases", "*.yaml", lambda declaration: ["leases-prod"], dags_of)
    assert collects == [False]
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("option", "value"), [("retry_delay", "soon"), ("ensure_every", "0s"), ("retries", "many"), ("retries", "-1")]
)
def test_a_wrong_setting_is_one_import_error_and_leaves_no_half_of_a_dag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text(STREAM)
    monkeypatch.setenv(f"AIRFLOW__KSTREAM__{option.upper()}", value)
    with pytest.raises(InvalidInput, match=rf"\[kstream\] {option}"):
        Declarations("streams", tmp_path, monkeypatch).dags()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_not_there_gets_a_dag_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    [dag] = Declarations(kind, tmp_path / "nowhere", monkeypatch).dags().values()
    assert dag.dag_id == f"refused-{kind}"
    assert "there is no such folder" in str(dag.description)


def test_hooks_and_operators_miss_a_folder_of_declarations_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__TICKETS_FOLDER", "/nope")
    with pytest.raises(InvalidInput, match=r"\[kstream\] tickets_folder is '/nope'; there is no such folder"):
        ticket_declaration("prod")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_made_of_nothing(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.delenv(f"AIRFLOW__KSTREAM__{kind.upper()}_FOLDER", raising=False)
    made = runpy.run_path(str(STUBS / f"kstream_{kind}.py"))
    assert not [value for value in made.values() if isinstance(value, DAG)]


@pytest.mark.parametrize(("configured", "used"), [("spark_prod", "spark_prod"), ("", None)])
def test_the_dag_of_a_stream_submits_with_the_spark_connection_of_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: str, used: str | None
) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text(STREAM)
    monkeypatch.setenv("AIRFLOW__KSTREAM__SPARK_CONN_ID", configured)
    dag = Declarations("streams", tmp_path, monkeypatch).dags()["stream-prod.orders"]
    operator = dag.get_task("keep")
    assert isinstance(operator, SparkStreamOperator)
    assert (operator.cluster_conn_id, operator.conn_id) == ("prod", used)


def test_clusters_declare_streams_of_one_name_and_no_id_changes_by_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disaster recovery site has the same names. A DAG whose id changed would lose its run, and start paused."""
    declarations = Declarations("streams", tmp_path, monkeypatch)
    seen = []
    for cluster in ("west", "east"):
        (tmp_path / cluster).mkdir()
        (tmp_path / cluster / "orders.yaml").write_text(STREAM)
        seen.append(declarations.dags())
    alone, both = seen
    assert sorted(alone) == [
        "control-west",
        "doctor-west",
        "fleet-west",
        "housekeeping-west",
        "stream-west.orders",
        "undeclared-west",
    ]
    assert both.keys() - alone.keys() == {
        "control-east",
        "doctor-east",
        "fleet-east",
        "housekeeping-east",
        "stream-east.orders",
        "undeclared-east",
    }
    for cluster in ("west", "east"):
        keep = both[f"stream-{cluster}.orders"].get_task("keep")
        assert isinstance(keep, SparkStreamOperator)
        assert keep.cluster_conn_id == cluster


@pytest.mark.parametrize(
    ("one", "other"), [(("a-b", "c"), ("a", "b-c")), (("a.b", "c"), ("a", "b")), (("a" * 250, "b" * 50), ("a", "b"))]
)
def test_no_two_streams_share_an_id_and_each_is_one(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert stream_id(*one) != stream_id(*other)
    assert DAG(stream_id(*one), schedule=None).dag_id.endswith(f".{one[1]}")


def test_a_connection_whose_dags_would_have_anothers_ids_gets_none_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that a DAG's id can hold as it is loses nothing, whatever is added beside it."""
    declarations = Declarations("streams", tmp_path, monkeypatch)
    seen = []
    for cluster in ("eu_west", "eu:west"):
        (tmp_path / cluster).mkdir()
        (tmp_path / cluster / "orders.yaml").write_text(STREAM)
        seen.append(declarations.dags())
    alone, both = seen
    assert both.keys() - alone.keys() == {"refused-streams-eu_west-orders"}
    keep = both["stream-eu_west.orders"].get_task("keep")
    assert isinstance(keep, SparkStreamOperator)
    assert keep.cluster_conn_id == "eu_west"
    said = both["refused-streams-eu_west-orders"].description or ""
    assert "eu:west" in said
    assert "have the ids of those of eu_west; give connection eu:west another id" in said


def test_the_dag_of_a_stream_says_what_people_call_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders_v2.yaml").write_text(
        STREAM.replace("name: orders", "name: orders_v2, app_name: Orders.Stream v2")
    )
    dag = Declarations("streams", tmp_path, monkeypatch).dags()["stream-prod.orders_v2"]
    assert dag.description == "Keeps the stream Orders.Stream v2 (orders_v2) running"


def test_a_folder_whose_last_declaration_is_gone_still_looks_after_its_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("prod", "my cluster", ".git", "lost+found"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("No connection's.")
    dags = Declarations("streams", tmp_path, monkeypatch).dags()
    others = ("control", "doctor", "fleet", "housekeeping", "undeclared")
    assert sorted(dags) == sorted(f"{other}-{folder}" for other in others for folder in ("my_cluster", "prod"))
    assert dags["undeclared-prod"].is_paused_upon_creation is False, "nobody thinks of it before a file is removed"
    look_after = dags["undeclared-prod"].get_task("look_after")
    assert isinstance(look_after, VanishedStreamsOperator)
    assert (look_after.cluster_conn_id, look_after.declared) == ("prod", [])


def test_a_folder_that_cannot_be_read_has_a_dag_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its streams are looked after as those whose files are gone, until it can be read again."""
    for folder in ("prod", "closed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "orders.yaml").write_text(STREAM)
    tmp_path.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    # Nobody may enter the folders above: this one is reached as the current one.
    with contextlib.chdir(tmp_path), without_roots_rights():
        dags = Declarations("streams", Path(), monkeypatch).dags()
    assert "stream-prod.orders" in dags
    assert "Permission denied" in str(dags["refused-streams-closed"].description)
    look_after = dags["undeclared-closed"].get_task("look_after")
    assert isinstance(look_after, VanishedStreamsOperator)
    assert look_after.declared == []


@pytest.mark.parametrize("kind", ["streams", "leases"])
@pytest.mark.parametrize("mode", [0o000, 0o111, 0o444])
def test_a_folder_of_all_declarations_that_cannot_be_read_has_a_dag_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: int
) -> None:
    """Also where it can be listed, and what is in it can't be looked at."""
    folder = tmp_path / "declared"
    (folder / "prod").mkdir(parents=True)
    tmp_path.chmod(0o755)
    folder.chmod(mode)
    with contextlib.chdir(tmp_path), without_roots_rights():
        dags = Declarations(kind, Path(folder.name), monkeypatch).dags()
    assert "Permission denied" in str(dags[f"refused-{kind}-declared"].description)


@pytest.mark.parametrize("text", ["name: orders\ncredenti", STREAM.replace("application", "applicaton"), ""])
def test_a_refused_declaration_keeps_its_dag_and_its_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Half written, or with a typo. Airflow takes a DAG that disappears for stale and looks at its run no longer."""
    (tmp_path / "east").mkdir()
    (tmp_path / "east" / "orders.yaml").write_text(text)
    dags = Declarations("streams", tmp_path, monkeypatch).dags()
    keep = dags["stream-east.orders"].get_task("keep")
    assert isinstance(keep, ClaimedStreamOperator)
    assert (keep.name, keep.cluster_conn_id) == ("orders", "east")
    assert str(tmp_path / "east" / "orders.yaml") in keep.refusal
    assert "refused" in dags["stream-east.orders"].tags
    assert dags["stream-east.orders"].dag_display_name.startswith("refused-streams-east-orders: ")
    # A file that can't be read has not vanished.
    look_after = dags["undeclared-east"].get_task("look_after")
    assert isinstance(look_after, VanishedStreamsOperator)
    assert look_after.declared == ["orders"]


def test_a_notifier_that_can_not_be_imported_is_refused_and_its_stream_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text(f"{STREAM[:-1]}, notify: {{notifier: no.such.Notifier}}}}")
    (tmp_path / "prod" / "clicks.yaml").write_text(STREAM.replace("orders", "clicks"))
    dags = Declarations("streams", tmp_path, monkeypatch).dags()

    assert "notify.notifier is 'no.such.Notifier'" in str(dags["stream-prod.orders"].doc_md)
    assert isinstance(dags["stream-prod.orders"].task_dict["keep"], ClaimedStreamOperator)
    assert type(dags["stream-prod.clicks"].task_dict["keep"]) is SparkStreamOperator


def test_a_wrong_setting_of_the_notifier_takes_no_stream_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text(STREAM)
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", "no.such.Notifier")
    dags = Declarations("streams", tmp_path, monkeypatch).dags()

    assert type(dags["stream-prod.orders"].task_dict["keep"]) is SparkStreamOperator
    assert "notifier is 'no.such.Notifier', which can't be imported" in str(dags["refused-streams-notifier"].doc_md)


def with_setting(patch: pytest.MonkeyPatch, name: str, value: str) -> None:
    patch.setenv(f"AIRFLOW__KSTREAM__{name.upper()}", value)


@pytest.fixture
def of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, DAG]]:
    """Return what makes the DAGs of one declaration of each kind, all for the connection `east`."""
    texts = {"leases": "paths: [/data]", "tickets": "", "tokens": "users: [etl]"}
    for kind, text in texts.items():
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "east.yaml").write_text(text)
    (tmp_path / "streams" / "east").mkdir(parents=True)
    (tmp_path / "streams" / "east" / "orders.yaml").write_text(STREAM)
    (tmp_path / "streams" / "east" / "sales.yaml").write_text("{")
    (tmp_path / "streams" / "east" / "No Name.yaml").write_text("{")

    def made() -> dict[str, DAG]:
        kinds = (Declarations(kind, tmp_path / kind, monkeypatch).dags() for kind in KINDS)
        return {name: dag for dags in kinds for name, dag in dags.items()}

    return made


def test_a_prefix_stands_before_each_id(
    of_all_kinds: Callable[[], dict[str, DAG]], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = of_all_kinds()
    assert len(without) == 12
    with_setting(monkeypatch, "dag_id_prefix", "etl-")
    assert of_all_kinds().keys() == {f"etl-{name}" for name in without}


@pytest.mark.parametrize(("prefix", "before"), [("my team ", "my_team_"), ("é", "_"), ("p" * 60, "p" * 40)])
def test_a_prefix_that_no_id_may_have_is_made_fit(
    of_all_kinds: Callable[[], dict[str, DAG]], monkeypatch: pytest.MonkeyPatch, prefix: str, before: str
) -> None:
    with_setting(monkeypatch, "dag_id_prefix", prefix)
    assert {name.startswith(before) for name in of_all_kinds()} == {True}
    assert len(stream_id("c" * 300, "s" * 50)) == 250


def test_families_are_switched_off_one_by_one(
    of_all_kinds: Callable[[], dict[str, DAG]], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = of_all_kinds()
    for family in Family:
        with_setting(monkeypatch, "without_dags", f"{family}, ")
        gone = every.keys() - of_all_kinds().keys()
        needed = family in {Family.STREAM, Family.UNDECLARED, Family.REFUSED}
        assert gone == (set() if needed else {f"{family}-east"})


@pytest.mark.parametrize("wrong", ["docter", "undeclared"])
def test_a_family_that_can_not_be_switched_off_takes_no_dag_away(
    of_all_kinds: Callable[[], dict[str, DAG]], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    every = of_all_kinds()
    with_setting(monkeypatch, "without_dags", f"{wrong} doctor")
    dags = of_all_kinds()
    assert every.keys() - dags.keys() == {"doctor-east"}
    assert f"[kstream] without_dags has {wrong}; allowed are control, " in str(
        dags["refused-streams-without_dags"].description
    )


def test_a_dag_that_is_to_be_turned_on_says_so_in_its_name(
    of_all_kinds: Callable[[], dict[str, DAG]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the DAG undeclared-* keeps for the DAG processor. Without a prefix that is not asked for."""
    monkeypatch.setenv("AIRFLOW_VAR_KSTREAM_MOVED_DAGS_EAST", '{"orders": "stream-east.orders", "No Name": 1}')
    assert of_all_kinds()["stream-east.orders"].dag_display_name == "stream-east.orders"
    with_setting(monkeypatch, "dag_id_prefix", "etl-")
    name = of_all_kinds()["etl-stream-east.orders"].dag_display_name
    assert name == "etl-stream-east.orders: turn it on; stream-east.orders, which watched its stream, is gone"


@pytest.mark.parametrize("stored", ["[]", "{", "7"])
def test_a_variable_that_somebody_wrote_costs_no_dag(
    of_all_kinds: Callable[[], dict[str, DAG]], monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_KSTREAM_MOVED_DAGS_EAST", stored)
    with_setting(monkeypatch, "dag_id_prefix", "etl-")
    assert of_all_kinds()["etl-stream-east.orders"].dag_display_name == "etl-stream-east.orders"
