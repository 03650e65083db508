"""All answers that Airflow gives its users through the API that its UI uses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow_kstream.model.errors import KstreamError
from tests.live.airflow_api import LiveApi

_LISTS = ("connections", "variables", "importErrors", "eventLogs", "plugins", "providers", "dags", "dagSources")


def write_answers(api: LiveApi, folder: Path) -> None:
    """Write one file for each answer, after finding the runs, tasks, tries, rendered fields and XComs that exist."""
    folder.mkdir()
    for number, (path, answer) in enumerate(_answers(api)):
        (folder / f"{number:05}.json").write_text(json.dumps({"path": path, "answer": answer}))


def _answers(api: LiveApi) -> Iterator[tuple[str, Any]]:
    for path in _paths(api):
        with suppress(KstreamError):
            yield path, api.call("GET", path)


def _paths(api: LiveApi) -> Iterator[str]:
    yield from (f"/{name}?limit=100" for name in _LISTS)
    for dag in api.dag_ids():
        yield from (f"/dags/{dag}/details", f"/dagSources/{dag}", f"/dags/{dag}/tasks")
        for run in api.dag_run_states(dag):
            here = f"/dags/{dag}/dagRuns/{run}"
            yield from (here, f"{here}/taskInstances?limit=100")
            for task in api.task_instances(dag, run):
                ref = task.ref
                there = f"{here}/taskInstances/{ref.task_id}"
                index = f"?map_index={ref.map_index}"
                yield from (f"{there}/xcomEntries?limit=100", f"{there}/links{index}", f"{there}/tries")
                yield from (f"{there}/logs/{number}{index}" for number in range(1, task.try_number + 1))
                entries = api.call("GET", f"{there}/xcomEntries?limit=100")["xcom_entries"]
                yield from (f"{there}/xcomEntries/{entry['key']}{index}" for entry in entries)
