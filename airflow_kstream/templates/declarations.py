"""DAGs that are made from declarations: the YAML files of a folder that an environment variable names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import shorten

from airflow.sdk import DAG, task

from airflow_kstream.model.errors import InvalidInput

DagsOf = Callable[[Path, str], Iterable[DAG]]
# Of a refusal's words, so that they stay on one line.
_SHOWN = 160


def declared_dags(kind: str, pattern: str, dags_of: DagsOf) -> dict[str, DAG]:
    """By their ids, what `dags_of` makes of each declaration in $KSTREAM_<kind>, of its path and its text.

    In place of a declaration that is refused (InvalidInput) there is a DAG that fails and says why; so there is in
    place of a folder that is not there. Nothing is declared where the variable is not set.
    """
    variable = f"KSTREAM_{kind.upper()}"
    named = os.environ.get(variable)
    if not named:
        return {}
    folder = Path(named)
    if not folder.is_dir():
        return _by_id([_refused(kind, f"${variable}", f"it is {named!r}; there is no such folder")])
    made: dict[str, DAG] = {}
    for declaration in sorted(folder.glob(pattern)):
        try:
            made |= _by_id(dags_of(declaration, _text(declaration)))
        except InvalidInput as error:
            name = "-".join((kind, *declaration.relative_to(folder).with_suffix("").parts))
            made |= _by_id([_refused(name, str(declaration), error.message)])
    return made


def _text(declaration: Path) -> str:
    try:
        return declaration.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"it can't be read: {error}") from error


def _refused(name: str, what: str, why: str) -> DAG:
    whole = f"{what}: {why}"
    with DAG(
        dag_id=f"refused-{name}",
        # What the list of DAGs shows.
        dag_display_name=shorten(f"refused-{name}: {why}", _SHOWN),
        description=whole,
        doc_md=whole,
        schedule=None,
        tags=["kstream", "refused"],
    ) as dag:

        @task
        def say_why() -> None:
            raise InvalidInput(whole)

        say_why()
    return dag


def _by_id(dags: Iterable[DAG]) -> dict[str, DAG]:
    return {dag.dag_id: dag for dag in dags}
