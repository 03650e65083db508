"""The DAGs that the shipped DAG files make of declarations, without a running Airflow."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_kstream.dags import STUBS


class Declarations:
    """The folder that one kind of declaration (`streams`, `leases`, `tickets`) is read from."""

    def __init__(self, kind: str, folder: Path, environment: pytest.MonkeyPatch) -> None:
        self._kind = kind
        self.folder = folder
        environment.setenv(f"AIRFLOW__KSTREAM__{kind.upper()}_FOLDER", str(folder))

    def dags(self) -> dict[str, DAG]:
        made = runpy.run_path(str(STUBS / f"kstream_{self._kind}.py"))
        return {value.dag_id: value for value in made.values() if isinstance(value, DAG)}

    def dags_of(self, text: str) -> dict[str, DAG]:
        """Return the DAGs of one declaration, `prod`."""
        (self.folder / "prod.yaml").write_text(text)
        return self.dags()


def form(dag: DAG) -> Mapping[str, Any]:
    return {name: dag.params.get_param(name) for name in dag.params}
