"""Files that declare streams, and the task that looks at them for edits of policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from airflow.sdk import Context

from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.operators.policy_edits import PolicyEditsOperator
from tests.simulated.fleet import CONNECTION


class Folder:
    """The declarations of one cluster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, *specs: StreamSpec) -> None:
        for spec in specs:
            # JSON is YAML.
            self.write_text(spec.name, json.dumps(spec.to_mapping()))

    def write_text(self, name: str, text: str) -> None:
        (self._folder / f"{name}.yaml").write_text(text)

    def remove(self, name: str) -> None:
        (self._folder / f"{name}.yaml").unlink()

    def look(self) -> list[str]:
        files = sorted(self._folder.glob("*.yaml"))
        task = PolicyEditsOperator(task_id="policy_edits", declarations=files, cluster_conn_id=CONNECTION)
        return task.execute(cast("Context", {}))
