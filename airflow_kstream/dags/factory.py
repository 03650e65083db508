"""DAGs that are made from declarations: the YAML files of a folder that Airflow's configuration names."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any

from airflow.sdk import DAG, task

from airflow_kstream import settings
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.printable import printable

log = logging.getLogger(__name__)

DagsOf = Callable[[Path, str], Iterable[DAG]]
# The DAG of a refused declaration, from its path and the refusal; None for one that only fails and says why.
DagOfRefused = Callable[[Path, str], DAG | None]
# The shown part of a refusal, which must fit on one line.
_SHOWN = 160
# Airflow's limits for the id of a DAG (airflow.sdk.definitions._internal.node.validate_key).
_NO_ID, _LONGEST_ID = re.compile(r"[^\w.-]", re.ASCII), 250


def dags_of_folder(
    kind: str, pattern: str, dags_of: DagsOf, dag_of_refused: DagOfRefused = lambda declaration, why: None
) -> dict[str, DAG]:
    """Make DAGs of each declaration in the folder `[kstream] <kind>_folder`: `dags_of` gets its path and its text.

    A wrong declaration or a missing folder gets a DAG that fails and says why. An empty setting declares nothing.
    `dags_of` must make its DAGs with `declared_dag`.
    """
    try:
        folder = settings.folder(f"{kind}_folder")
    except InvalidInput as error:
        return _by_id([_refused(kind, "airflow.cfg", error.message)])
    if folder is None:
        return {}
    made: dict[str, DAG] = {}
    for declaration in sorted(folder.glob(pattern)):
        # Editors keep such files beside a file that they have open.
        if declaration.name.startswith("."):
            continue
        try:
            made |= _by_id(dags_of(declaration, read_text(declaration)))
        except Exception as error:  # No error may cost the others their DAGs.
            why = error.message if isinstance(error, InvalidInput) else f"{type(error).__name__}: {error}"
            name = "-".join((kind, *declaration.relative_to(folder).with_suffix("").parts))
            refused = dag_of_refused(declaration, why) or _refused(name, str(declaration), why)
            made |= _by_id([refused])
            if not isinstance(error, InvalidInput):
                log.exception("No DAG could be made of %s", declaration)
    return made


def declared_dag(dag_id: str, description: str, every: timedelta, **more: Any) -> DAG:
    """Make a DAG with one run at a time, at this interval. Airflow finds it only by the name that a stub gives it.

    A DAG that registered itself would be found even if an error came before its last task.
    """
    return DAG(
        dag_id=dag_id,
        description=description,
        schedule=every,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        auto_register=False,
        **{"tags": ["kstream"], **more},
    )


def fit_for_id(name: str) -> str:
    """Return the name with what no DAG's id may hold replaced, short enough for an id with a prefix."""
    return _NO_ID.sub("_", name)[: _LONGEST_ID - len("undeclared-")]


def refused_id(name: str) -> str:
    return f"refused-{fit_for_id(name)}"


def refusal(what: str, why: str) -> str:
    """Return the refusal of a file's content as text for people: it may quote anything that the file holds."""
    return "\n".join(printable(line) for line in f"{what}: {why}".splitlines())


def shown(name: str, why: str) -> str:
    """Return the name of a refused declaration's DAG in the list of DAGs: one line."""
    return shorten(printable(f"refused-{name}: {why}".replace("\n", " ")), _SHOWN)


def _refused(name: str, what: str, why: str) -> DAG:
    whole = refusal(what, why)
    with DAG(
        dag_id=refused_id(name),
        dag_display_name=shown(name, why),
        description=whole,
        doc_md=whole,
        schedule=None,
        tags=["kstream", "refused"],
        auto_register=False,
    ) as dag:

        @task
        def say_why() -> None:
            raise InvalidInput(whole)

        say_why()
    return dag


def _by_id(dags: Iterable[DAG]) -> dict[str, DAG]:
    return {dag.dag_id: dag for dag in dags}
