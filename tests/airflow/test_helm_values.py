"""docker/values.yaml: Helm is not at hand, so its keys are held against what the chart's own values and notes say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import yaml
from airflow.sdk import Connection

from airflow_kstream.dags.factory import KstreamDagBundle
from airflow_kstream.get_provider_info import get_provider_info
from airflow_kstream.hooks.connection import fields_of
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.policy.streams.restart.allowed import not_covered
from tests.pages import ROOT

VALUES: dict[str, Any] = yaml.safe_load((ROOT / "docker/values.yaml").read_text())
ENV = {each["name"]: each["value"] for each in VALUES["env"]}
SETTINGS = get_provider_info()["config"]["kstream"]["options"]
WORKERS, TRIGGERER = VALUES["workers"]["celery"], VALUES["triggerer"]
# As chart 1.22 has them: `chart/values.yaml`, its release notes 1.20 and 1.21, which moved what concerns Celery's
# workers below `workers.celery`, and pull request 65059 for their extraVolumeMounts.
KEYS = {
    "airflowVersion",
    "env",
    "executor",
    "images.airflow.repository",
    "images.airflow.tag",
    "triggerer.extraVolumeMounts",
    "triggerer.extraVolumes",
    "triggerer.replicas",
    "volumeMounts",
    "volumes",
    "workers.celery.extraVolumeMounts",
    "workers.celery.extraVolumes",
    "workers.celery.replicas",
}


def keys(values: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def mounted(mounts: list[dict[str, Any]]) -> set[PurePosixPath]:
    return {PurePosixPath(each["mountPath"]) for each in mounts}


def has(mounts: list[dict[str, Any]], path: str) -> bool:
    """Return whether a pod with these mounts has the file or folder."""
    wanted = PurePosixPath(path)
    return any(wanted.is_relative_to(place) for place in mounted(mounts)) or wanted in {
        parent for place in mounted(mounts) for parent in place.parents
    }


def connection() -> Connection:
    return Connection.from_json(ENV["AIRFLOW_CONN_PROD"], conn_id="prod")


def test_the_chart_has_each_key() -> None:
    assert set(keys(VALUES)) == KEYS


def test_each_setting_exists_and_each_folder_is_mounted() -> None:
    named = {name.removeprefix("AIRFLOW__KSTREAM__").lower() for name in ENV if name.startswith("AIRFLOW__KSTREAM__")}
    assert named <= SETTINGS.keys()
    assert all(
        has(VALUES["volumeMounts"], ENV[f"AIRFLOW__KSTREAM__{name.upper()}"]) for name in named if "folder" in name
    )


def test_the_bundle_of_the_folder_is_among_airflows() -> None:
    [_, ours] = json.loads(ENV["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"])
    assert ours["classpath"] == f"{KstreamDagBundle.__module__}.{KstreamDagBundle.__qualname__}"


def test_who_needs_a_keytab_has_it_and_nobody_else() -> None:
    fields = fields_of(connection())
    assert fields.keytab_path
    assert fields.hadoop_conf_dir
    assert fields.allow
    assert has(VALUES["volumeMounts"], fields.hadoop_conf_dir)
    for part in (WORKERS, TRIGGERER):
        assert has(part["extraVolumeMounts"], fields.keytab_path)
    for path in fields.allow.local_files:
        assert has(WORKERS["extraVolumeMounts"], path)
        assert not has(TRIGGERER["extraVolumeMounts"], f"{path}any.keytab")
    assert not any("secret" in volume for volume in VALUES["volumes"])


def test_a_keytab_is_its_owners_and_follows_its_secret() -> None:
    for part in (WORKERS, TRIGGERER):
        assert {each["name"] for each in part["extraVolumes"]} == {each["name"] for each in part["extraVolumeMounts"]}
        assert {each["secret"]["defaultMode"] for each in part["extraVolumes"]} == {0o400}
        assert all(each["readOnly"] and "subPath" not in each for each in part["extraVolumeMounts"])


def test_the_connection_allows_a_keytab_where_the_kubelet_really_has_it() -> None:
    """A Secret's file is a symlink into a folder that gets a new name with each change of the Secret."""

    def real(path: str) -> str:
        place = PurePosixPath(path)
        return str(place.parent / "..2026_11_28_17_00_00.123456789" / place.name)

    allow = fields_of(connection()).allow
    assert allow
    needed = Allow(principals=("streamer@EXAMPLE.COM",), local_files=("/etc/kstream/streams/streamer.keytab",))
    assert not not_covered(allow, needed, real)
