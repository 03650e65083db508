"""DAGs that are made from declarations, the YAML files of a folder, and the shipped DAG files as a bundle."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any

from airflow.dag_processing.bundles.local import LocalDagBundle
from airflow.sdk import DAG, WeightRule, get_parsing_context, task

from airflow_kstream import settings
from airflow_kstream.clients.local.regular_files import is_nobodys, may_be_folder, read_text, require_folder
from airflow_kstream.dags import STUBS
from airflow_kstream.dags.ids import Family, is_of, refused_id
from airflow_kstream.model.airflow_options import AirflowOptions, options_of
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.printable import printable
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.notifications.notifier import callback, require_usable

log = logging.getLogger(__name__)

DagsOf = Callable[[Path, str], Iterable[DAG]]
# The ids of the DAGs that are made of a declaration, from its path alone.
IdsOf = Callable[[Path], Iterable[str]]
# The DAG of a refused declaration, from its path and the refusal; None for one that only fails and says why.
DagOfRefused = Callable[[Path, str], DAG | None]
_NO_OPTIONS = AirflowOptions()
# The shown part of a refusal, which must fit on one line.
_SHOWN = 160


def dags_of_folder(
    kind: str,
    pattern: str,
    ids_of: IdsOf,
    dags_of: DagsOf,
    dag_of_refused: DagOfRefused = lambda declaration, why: None,
) -> dict[str, DAG]:
    """Make DAGs of each declaration in the folder `[kstream] <kind>_folder`: `dags_of` gets its path and its text.

    A wrong declaration, or a folder that is missing or can't be read, gets a DAG that fails and says why. An empty
    setting declares nothing. `dags_of` must make its DAGs with `declared_dag`. At the start of a task only its DAG's
    declaration is read.

    Raises InvalidInput: when `[kstream] declared_executors` is wrong. No declaration is to be blamed for it, and no
    task to move to other workers.
    """
    settings.switch("declared_executors")
    try:
        folder = settings.folder(f"{kind}_folder")
    except InvalidInput as error:
        return _by_id([refusing_dag(kind, "airflow.cfg", error.message)])
    if folder is None:
        return {}
    made = _by_id(_refused_folders(kind, folder, pattern))
    with _no_collections():
        for declaration in declarations(folder, pattern):
            if not is_wanted(*ids_of(declaration)):
                continue
            try:
                made |= _by_id(dags_of(declaration, read_text(declaration)))
            except Exception as error:  # No error may cost the others their DAGs.
                why = error.message if isinstance(error, InvalidInput) else f"{type(error).__name__}: {error}"
                name = "-".join((kind, *declaration.relative_to(folder).with_suffix("").parts))
                refused = dag_of_refused(declaration, why) or refusing_dag(name, str(declaration), why)
                made |= _by_id([refused])
                if not isinstance(error, InvalidInput):
                    log.exception("No DAG could be made of %s", declaration)
    return made


@contextmanager
def _no_collections() -> Iterator[None]:
    """Let Python's garbage collector wait.

    What is made here stays, as does what Airflow imported. The collector would go through it again and again, in a
    quarter of the time that a fleet takes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def is_wanted(*dag_ids: str) -> bool:
    """Return False if Airflow starts a task of another DAG. The file of a refused DAG is not known by its id."""
    wanted = get_parsing_context().dag_id
    return wanted is None or wanted in dag_ids or is_of(Family.REFUSED, wanted)


def declarations(folder: Path, pattern: str) -> list[Path]:
    """Return the files of the pattern, without those that editors keep beside a file that they have open.

    A folder that can't be read has none: Path.glob says nothing of it, or raises.
    """
    try:
        return [file for file in sorted(folder.glob(pattern)) if not file.name.startswith(".")]
    except OSError:
        return []


def _refused_folders(kind: str, folder: Path, pattern: str) -> Iterator[DAG]:
    """Yield a DAG that says so for each folder that can't be read."""
    for within in [folder, *(_folders_in(folder) if "/" in pattern else ())]:
        try:
            require_folder(within)
        except InvalidInput as error:
            yield refusing_dag(f"{kind}-{within.name}", str(within), error.message)


def _folders_in(folder: Path) -> list[Path]:
    """Return the folders that may be connections'; those that can't be looked at may, too. None if it can't be read."""
    try:
        return sorted(each for each in folder.iterdir() if not is_nobodys(each.name) and may_be_folder(each))
    except OSError:
        return []


def stream_folders() -> list[Path]:
    """Return the folders in `[kstream] streams_folder`, each of which a connection's id names.

    None of a folder that is not set, not there or can't be read, which `dags_of_folder` tells, nor those that are
    nobody's.
    """
    try:
        folder = settings.folder("streams_folder")
    except InvalidInput:
        return []
    return _folders_in(folder) if folder else []


def declared_dag(
    cluster: str,
    dag_id: str,
    description: str,
    every: timedelta,
    options: AirflowOptions = _NO_OPTIONS,
    tags: Iterable[str] = (),
    **more: Any,
) -> DAG:
    """Make a DAG with one run at a time, at this interval. Airflow finds it only by the name that a stub gives it.

    `options` hold for all of its tasks, and the connection bounds their notifiers. Raises InvalidInput: when this
    Airflow can't do what they say.

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
        default_args=task_arguments(options, cluster),
        tags=["kstream", *tags, *options.tags],
        **more,
    )


def task_arguments(options: AirflowOptions, cluster: str) -> dict[str, Any]:
    """Return the arguments of an operator that carry the options; none for what is unset.

    Raises InvalidInput: when the executor's pod can't be made here, or a notifier can't be used.
    """
    if options.on_its_own_executor and not settings.switch("declared_executors"):
        why = "[kstream] declared_executors is False"
        raise InvalidInput(f"airflow.queue and airflow.executor_config are not for declarations: {why}")
    arguments: dict[str, Any] = {"queue": options.queue, "pool": options.pool, "owner": options.owner}
    if options.priority is not None:
        arguments |= {"priority_weight": options.priority, "weight_rule": WeightRule.ABSOLUTE}
    if options.notify.notifier:
        require_usable(options.notify, "airflow.notify.")
        arguments["notify"] = {"notifier": options.notify.notifier, "kwargs": dict(options.notify.kwargs)}
    for name, notify in options.callbacks.items():
        arguments[f"{name}_callback"] = callback(cluster, notify, f"airflow.callbacks.{name}.")
    if options.executor_config:
        arguments["executor_config"] = dict(options.executor_config) | _pod(options.executor_config)
    return {name: value for name, value in arguments.items() if value is not None}


def _pod(executor_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod of the Kubernetes executor as the object that it wants instead of a mapping."""
    pod = executor_config.get("pod_override")
    if pod is None:
        return {}
    try:
        # Only where this executor is used.
        from airflow.providers.cncf.kubernetes.pod_generator import PodGenerator  # type: ignore[import-not-found]
    except ImportError as error:
        why = "it needs apache-airflow-providers-cncf-kubernetes where this DAG is read"
        raise InvalidInput(f"airflow.executor_config.pod_override: {why} ({error})") from error
    return {"pod_override": PodGenerator.deserialize_model_dict(pod)}


def options_in(declaration: Path, cluster: str) -> AirflowOptions:
    """Return the options of a declaration that is refused, as far as they can be read and hold here: none otherwise.

    A typo elsewhere in the file must not move the task to workers without the stream's keytab.
    """
    try:
        options = options_of(read_mapping(read_text(declaration)))
        if options.on_its_own_executor and not settings.switch("declared_executors"):
            options = replace(options, queue=None, executor_config={})
        task_arguments(options, cluster)
    except InvalidInput:
        return _NO_OPTIONS
    return options


def refusal(what: str, why: str) -> str:
    """Return the refusal of a file's content as text for people: it may quote anything that the file holds."""
    return "\n".join(printable(line) for line in f"{what}: {why}".splitlines())


def shown(name: str, why: str) -> str:
    """Return the name of a refused declaration's DAG in the list of DAGs: one line."""
    return shorten(printable(f"refused-{name}: {why}".replace("\n", " ")), _SHOWN)


def refusing_dag(name: str, what: str, why: str) -> DAG:
    """Make a DAG that fails and says what is refused, and why."""
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


class KstreamDagBundle(LocalDagBundle):
    """A local bundle of the shipped DAG files. Its DAGs are those of the folders that `[kstream]` names.

    Example::

        [dag_processor]
        dag_bundle_config_list = [
            {"name": "kstream", "classpath": "airflow_kstream.dags.factory.KstreamDagBundle", "kwargs": {}}
            ]

    What it does not do: it has no versions. The declarations lie outside of it and change without it.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(path=str(STUBS), **kwargs)
