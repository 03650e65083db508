"""The files for Prometheus and Grafana agree with each other and with what the package sends; their command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import airflow_kstream
from airflow_kstream.cli import main
from airflow_kstream.metrics import METRICS
from airflow_kstream.model.streams.event import anchor
from airflow_kstream.monitoring import NAMES, text_of
from airflow_kstream.policy.events.signs import OF_A_STREAM

_METRIC = re.compile(r"\bkstream_[a-z_]+")
PACKAGE = Path(airflow_kstream.__file__).parent


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text_of("alerts.rules.yml"))["groups"] for rule in group["rules"]]


def sent() -> set[str]:
    """Return the metrics of the package's source, as statsd_mapping.yml names them."""
    prefixes = {"": "", "cluster_": "cluster_", "ticket_": "ticket_", "keytab_": "keytab_", "lease_": "lease_"}
    call = re.compile(r'metrics\.(\w*?)(gauge|count)\(\s*"(\w+)"')
    dropped = re.compile(r'metrics\.cluster_count\("(\w+)" if failures else')
    names = {"kstream_event"}
    for source in PACKAGE.rglob("*.py"):
        text = source.read_text()
        for prefix, form, name in call.findall(text):
            names.add(f"kstream_{prefixes[prefix]}{name}{'_total' if form == 'count' else ''}")
        names |= {f"kstream_cluster_{name}_total" for name in dropped.findall(text)}
    return names


def asked() -> set[str]:
    """Return the metrics that a rule or a panel asks for."""
    dashboard = json.loads(text_of("dashboard.json"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries += [variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable]
    return {name for query in [*queries, *(rule["expr"] for rule in rules())] for name in _METRIC.findall(query)}


def test_rules_and_panels_ask_for_nothing_that_is_not_sent() -> None:
    assert asked() <= sent()
    assert {"kstream_cluster_heartbeat", "kstream_pulse", "kstream_horizon_seconds", "kstream_event"} <= asked()


def test_each_metric_that_is_sent_is_described_and_no_other() -> None:
    described = {f"kstream_{name.replace('.', '_')}" for name in METRICS}
    assert {name.removesuffix("_total") for name in sent()} == described


def test_each_event_of_a_stream_is_one_alert() -> None:
    kinds = [kind for rule in rules() for kind in re.findall(r'kind="(\w+)"', rule["expr"])]
    assert sorted(kinds) == sorted(kind.value for kind in OF_A_STREAM)


def test_each_alert_says_how_bad_it_is_what_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
        assert rule["annotations"].keys() == {"summary", "runbook"}, rule["alert"]


def test_each_alert_is_tried_by_a_test_of_the_rules() -> None:
    untried = {rule["alert"] for rule in rules() if rule["alert"] not in text_of("alerts.test.yml")}
    assert not untried


def test_what_a_runbook_tells_people_to_type_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """The words up to the first option or file."""
    for rule in rules():
        for command in re.findall(r"`kstream ([a-z -]+?)(?: -| [A-Z]|`)", rule["annotations"]["runbook"]):
            with pytest.raises(SystemExit) as ended:
                main([*command.split(), "--help"])
            assert ended.value.code == 0, command


def test_panels_have_numbers_of_their_own_and_the_chosen_data_source() -> None:
    panels = json.loads(text_of("dashboard.json"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"} == {"${datasource}"}


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["monitoring", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command_writes_every_file_into_a_new_folder_and_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "monitoring"
    assert run(folder) == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: text_of(name) for name in NAMES}
    assert capsys.readouterr().out.splitlines() == [str(folder / name) for name in NAMES]


def test_each_alert_links_its_entry_of_the_runbook_where_the_site_is_served(tmp_path: Path) -> None:
    assert run(tmp_path, "--docs-url", "https://docs.example.com") == 0
    expected = {rule["alert"]: f"https://docs.example.com/runbook.html#{anchor(rule['alert'])}" for rule in rules()}
    groups = yaml.safe_load((tmp_path / "alerts.rules.yml").read_text())["groups"]
    assert {
        rule["alert"]: rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"]
    } == expected
    told = re.findall(r'runbook_url: "(.*)"', (tmp_path / "alerts.test.yml").read_text())
    assert len(told) == (tmp_path / "alerts.test.yml").read_text().count("exp_annotations")
    assert {*told} <= {*expected.values()}


def test_it_replaces_no_changed_file_without_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = tmp_path / "alerts.rules.yml"
    changed.write_text("groups: []")
    assert run(tmp_path) == 2
    assert "alerts.rules.yml; compare them, then give --force" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["alerts.rules.yml"]
    assert changed.read_text() == "groups: []"
    assert run(tmp_path, "--force") == 0
    assert changed.read_text() == text_of("alerts.rules.yml")


def test_it_says_nothing_against_files_that_are_as_it_would_write_them(tmp_path: Path) -> None:
    assert [run(tmp_path), run(tmp_path)] == [0, 0]


def test_a_folder_that_can_not_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "folder") == 1
    assert "Not a directory" in capsys.readouterr().err
