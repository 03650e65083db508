"""Two DAGs for each declared cluster: one renews tickets, one checks keytabs. `<connection id>.yaml`.

The declarations lie in the folder that `[kstream] tickets_folder` names in Airflow's configuration, on the DAG
processor and on every worker; there is no DAG without it.

A declaration names whose tickets are kept fresh beside the connection's own; an empty file is for that one alone:

  principals:
    - {principal: etl@EXAMPLE.COM, keytab: /etc/security/keytabs/etl.keytab}
    - {principal: ops@EXAMPLE.COM, ticket_cache: /var/lib/airflow/ops.ccache}
  folder: /var/lib/airflow/tickets    # where the caches lie
  renew_at: 0.5                       # the share of its life after which a ticket is renewed
  alert_before: 1h                    # a failure that close to the expiry fails the task
  every: 15m                          # the schedule of tickets-<connection id>
  check_every: 1d                     # the schedule of keytabs-<connection id>

`tickets-<connection id>` has one mapped task for each principal: a keytab that is broken stops nobody else's renewal.
While the old ticket has time a failure is a warning and a metric; close to the expiry its task fails. It can be run by
hand for one principal, and with force. `keytabs-<connection id>` fails when a keytab can't be used any more, and says
which streams will end of it and when; it is a DAG of its own because a wrong keytab's every try may count towards the
lock-out of its account. A declaration that is wrong gets a DAG that fails and says why, and harms no other; so does a
folder that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_kstream.dags.factory import dags_of_folder, declared_dag
from airflow_kstream.hooks.kerberos import KerberosHook
from airflow_kstream.operators.keytabs import KeytabCheckOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator
from airflow_kstream.supervise.tickets.declaration import TicketDeclaration

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
    # The form's answers arrive as what they are, not as text.
    with declared_dag(
        f"tickets-{cluster_conn_id}",
        about,
        declaration.every,
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
            force="{{ params.force }}",
            map_index_template="{{ task.principal }}",
        ).expand(principal=principals())
    return dag


def keytab_dag(cluster_conn_id: str, declaration: TicketDeclaration) -> DAG:
    about = f"Checks the keytabs for {cluster_conn_id}"
    with declared_dag(f"keytabs-{cluster_conn_id}", about, declaration.check_every, doc_md=__doc__) as dag:
        KeytabCheckOperator(task_id="check", cluster_conn_id=cluster_conn_id)
    return dag


def cluster_dags(path: Path, text: str) -> Iterator[DAG]:
    declaration = TicketDeclaration.from_yaml(text)
    yield ticket_dag(path.stem, declaration)
    yield keytab_dag(path.stem, declaration)


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids."""
    return dags_of_folder("tickets", "*.yaml", cluster_dags)
