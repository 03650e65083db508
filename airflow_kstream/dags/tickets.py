"""Two DAGs for each declared cluster: one renews tickets, one checks keytabs. `<connection id>.yaml`.

The declarations lie in the folder that `[kstream] tickets_folder` names in Airflow's configuration, on the DAG
processor and on every worker; there is no DAG without it.

A declaration names the principals whose tickets are kept fresh besides the connection's own; it may be empty:

  principals:
    - {principal: etl@EXAMPLE.COM, keytab: /etc/security/keytabs/etl.keytab}
    - {principal: ops@EXAMPLE.COM, ticket_cache: /var/lib/airflow/ops.ccache}
  folder: /var/lib/airflow/tickets    # the folder of the caches
  renew_at: 0.5                       # the share of its life after which a ticket is renewed
  alert_before: 1h                    # a failure this close to the expiry fails the task
  every: 15m                          # the schedule of tickets-<connection id>
  check_every: 1d                     # the schedule of keytabs-<connection id>
  airflow: {queue: edge}              # also pool, priority, owner, tags, executor_config, notify, callbacks

`tickets-<connection id>` has one mapped task for each principal: a broken keytab stops no other principal's renewal.
While the old ticket is good, a failure is a warning and a metric; close to the expiry the task fails. A person can run
it by hand for one principal, and with force. `keytabs-<connection id>` fails when a keytab can no longer be used, and
says which streams it will take down, and when. It is a DAG of its own because each try of a wrong keytab may count
towards the lock-out of its account. A wrong declaration gets a DAG that fails and says why, and harms no other; so does
a missing folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_kstream.assets import cluster_inlets
from airflow_kstream.dags.factory import dags_of_folder, declared_dag
from airflow_kstream.dags.ids import Family, is_made, keytabs_id, tickets_id
from airflow_kstream.hooks.kerberos import KerberosHook
from airflow_kstream.model.airflow_options import require_no_templates
from airflow_kstream.model.kerberos.declarations import TicketDeclaration
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator, KeytabCheckOperator

# The form with which a person starts a run by hand.
FORM: Mapping[str, dict[str, Any]] = {
    "principal": {
        "default": None,
        "title": "Only this principal",
        "description": "One of the declared ones, or the connection's own. Leave it empty for all of them.",
        "type": ["null", "string"],
        "pattern": r"^[^/@\s]+(/[^/@\s]+)?@[^/@\s]+$",
        "section": "Whose tickets",
    },
    "force": {
        "default": False,
        "title": "Force",
        "description": "Renew tickets that have enough of their life left, too.",
        "type": "boolean",
        "section": "How",
    },
}


def ticket_dag(cluster_conn_id: str, declaration: TicketDeclaration) -> DAG:
    form = {name: Param(**field) for name, field in FORM.items()}
    about = f"Keeps tickets for {cluster_conn_id} fresh"
    # The form's answers arrive with their types, not as text.
    with declared_dag(
        cluster_conn_id,
        tickets_id(cluster_conn_id),
        about,
        declaration.every,
        declaration.airflow,
        params=form,
        render_template_as_native_obj=True,
        doc_md=__doc__,
    ) as dag:

        @task
        def principals(params: Mapping[str, Any] | None = None) -> list[str]:
            only = params["principal"] if params else None
            return [only] if only else KerberosHook(cluster_conn_id).principals()

        KerberosTicketRenewOperator.partial(
            task_id="renew",
            cluster_conn_id=cluster_conn_id,
            inlets=cluster_inlets(cluster_conn_id),
            force="{{ params.force }}",
            map_index_template="{{ task.principal }}",
        ).expand(principal=principals())
    return dag


def keytab_dag(cluster_conn_id: str, declaration: TicketDeclaration) -> DAG:
    about = f"Checks the keytabs for {cluster_conn_id}"
    with declared_dag(
        cluster_conn_id,
        keytabs_id(cluster_conn_id),
        about,
        declaration.check_every,
        declaration.airflow,
        doc_md=__doc__,
    ) as dag:
        KeytabCheckOperator(task_id="check", cluster_conn_id=cluster_conn_id)
    return dag


def cluster_dags(path: Path, text: str) -> Iterator[DAG]:
    fields = read_mapping(text)
    require_no_templates(fields)
    declaration = TicketDeclaration.from_mapping(fields)
    if is_made(Family.TICKETS):
        yield ticket_dag(path.stem, declaration)
    if is_made(Family.KEYTABS):
        yield keytab_dag(path.stem, declaration)


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids."""
    return dags_of_folder(
        "tickets", "*.yaml", lambda file: [tickets_id(file.stem), keytabs_id(file.stem)], cluster_dags
    )
