"""One DAG for each declared cluster, which is red before tokens reach their max lifetime: `<connection id>.yaml`.

The declarations lie in the folder that `[kstream] tokens_folder` names in Airflow's configuration, on the DAG processor
and on every worker; there is no DAG without it.

Streams need no declaration here: their own tasks restart them in time. It is for jobs that nobody supervises, and for
files with tokens that other programs use:

  users: [etl, reports]                         # every running application of these YARN users
  tags: [nightly]                               # or with one of these YARN tags
  applications: [application_1700000000000_42]  # or with these ids
  files: ["hdfs:///user/etl/etl.token"]         # credentials files; a local path is one of the worker's
  within: 1d                                    # how long before the end a hand is needed
  every: 1h                                     # the schedule
  airflow: {queue: edge}                        # also pool, priority, owner, tags, executor_config, notify, callbacks

One of the first four is needed. `tokens-<connection id>` looks at all of them in one task; a second one is mapped over
those that need a hand, each instance named after the application or file, and fails with the time that is left and the
way out. The connection's principal must be allowed to view the applications. A job that makes its own tokens from a
keytab looks the same from outside until it has outlived those of its launch: where a user has such jobs, watch tags.
A wrong declaration gets a DAG that fails and says why, and harms no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_kstream.dags.factory import dags_of_folder, declared_dag
from airflow_kstream.dags.ids import Family, is_made, tokens_id
from airflow_kstream.model.airflow_options import require_no_templates
from airflow_kstream.model.declared import written
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.operators.fleet_look import NeedsAHandOperator, TokenLookOperator

# An hour without the cluster is one run that waits, and is green afterwards.
_RETRIES, _RETRY_DELAY = 12, timedelta(minutes=5)


def token_dag(cluster_conn_id: str, declaration: TokenDeclaration) -> DAG:
    """Make the DAG of a declaration."""
    about = f"Shows which tokens on {cluster_conn_id} reach their max lifetime soon"
    with declared_dag(
        cluster_conn_id,
        tokens_id(cluster_conn_id),
        about,
        declaration.every,
        declaration.airflow,
        tags=["tokens"],
        doc_md=__doc__,
    ) as dag:
        fields = {name: value for name, value in written(declaration).items() if name not in {"every", "airflow"}}
        look = TokenLookOperator(
            task_id="look",
            cluster_conn_id=cluster_conn_id,
            declared=fields,
            retries=_RETRIES,
            retry_delay=_RETRY_DELAY,
        )
        NeedsAHandOperator.partial(task_id="hand", map_index_template="{{ task.subject }}", retries=0).expand(
            hand=look.output
        )
    return dag


def token_dags(declaration: Path, text: str) -> Iterator[DAG]:
    fields = read_mapping(text)
    require_no_templates(fields)
    made = TokenDeclaration.from_mapping(fields)
    if is_made(Family.TOKENS):
        yield token_dag(declaration.stem, made)


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids."""
    return dags_of_folder("tokens", "*.yaml", lambda file: [tokens_id(file.stem)], token_dags)
