"""A ticket for a task: acquired, renewed, inspected, and given to a child process that sees no other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from airflow.sdk import BaseHook

from airflow_kstream import settings
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.kerberos.krb5_conf import krb5_conf_of_a_child
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.kerberos.declarations import TicketDeclaration
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.supervise.tickets.managed import (
    ManagedTicket,
    TicketSelection,
    declaration_of,
    select_one,
    selected,
)

# The variables of this process that a child process needs; none is a credential.
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "SPARK_HOME", "HADOOP_CONF_DIR")


class KerberosHook(BaseHook):
    """The ticket of one principal on the cluster of a `kstream` connection.

    The principal is the connection's own, one that `<connection id>.yaml` in `[kstream] tickets_folder` names,
    or any other whose keytab is given. Its cache is the one that the renewal keeps for it: this hook acquires into the
    same file that the renewal DAG renews. No two principals or clusters share one.

    What it does not do: it sets nothing in this process's own environment, where another task or library would find
    it, and does not by itself renew a ticket that it acquired.

    Example::

        @task
        def report():
            with KerberosHook("prod", principal="etl@EXAMPLE.COM").environment() as env:
                SubprocessHook().run_command(["hdfs", "dfs", "-ls", "/"], env=env)

    There a child process gets a ticket of its own. `SparkSubmitHook(env_vars=...)` on YARN passes each variable on to
    the driver, which must get none of this host's: give it `environment(inherited=())`.

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param principal: the ticket's principal, if it is not the connection's own.
    :param keytab: the absolute path of its keytab, if neither the connection nor its declaration knows it.
    :param cache: the absolute path of the ticket cache, if it is not the one that the renewal keeps.
    """

    conn_name_attr = "cluster_conn_id"
    conn_type = "kstream"
    hook_name = "Kerberos ticket (kstream)"

    def __init__(
        self,
        cluster_conn_id: str,
        principal: str | None = None,
        keytab: str | None = None,
        cache: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.selection = TicketSelection(principal, keytab, cache)

    def principals(self) -> list[str]:
        """Return the connection's own principal and those of its declaration, regardless of this hook's own."""
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            kept = selected(cluster, ticket_declaration(self.cluster_conn_id), TicketSelection())
        return [ticket.principal for ticket in kept]

    def acquire(self) -> Ticket:
        """Put a ticket into the cache: from the keytab, or from the cache that the connection names.

        Readers see either the old ticket or the whole new one. Raises CredentialError: when the KDC refuses, or
        the keytab or cache is unusable. Raises Unavailable: when no KDC answers. Both leave the cache as it was.
        """
        with self._kept() as kept:
            return tickets.log_in(kept.identity, kept.cache)

    def renew(self) -> Ticket:
        """Renew the ticket in the cache without a keytab. Raises CredentialError: when it can't be renewed."""
        with self._kept() as kept:
            tried = f"renew the ticket in {kept.cache}"
            return tickets.renew(tickets.granting_ticket(kept.cache, kept.principal, tried), kept.cache)

    def ticket(self) -> Ticket:
        """Return the ticket-granting ticket in the cache, even if expired. Raises CredentialError: when none is."""
        with self._kept() as kept:
            return tickets.granting_ticket(kept.cache, kept.principal, f"read {kept.cache}")

    @contextmanager
    def identity(self) -> Iterator[Identity]:
        """Yield the identity for clients of this package. A keytab in the connection is a file until the block ends."""
        with self._kept() as kept:
            yield kept.identity

    @contextmanager
    def environment(self, inherited: Sequence[str] = INHERITED) -> Iterator[dict[str, str]]:
        """Yield the whole environment for a child process, with a cache of its own that is deleted afterwards.

        It has KRB5CCNAME and KRB5_CONFIG, and the variables of this process that `inherited` names. The ticket is not
        renewed while the child runs. A JVM reads KRB5CCNAME but not KRB5_CONFIG: if krb5.conf is not the system's,
        also give it `-Djava.security.krb5.conf`.
        """
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster, private_folder() as private:
            kept = select_one(cluster, ticket_declaration(self.cluster_conn_id), self.selection)
            cache = private / "ticket.ccache"
            tickets.acquire(kept.identity, cache)
            krb5_conf = krb5_conf_of_a_child(cluster.krb5_conf)
            yield {
                **{name: os.environ[name] for name in inherited if name in os.environ},
                **({"KRB5_CONFIG": krb5_conf} if krb5_conf else {}),
                "KRB5CCNAME": f"FILE:{cache}",
            }

    @contextmanager
    def _kept(self) -> Iterator[ManagedTicket]:
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            yield select_one(cluster, ticket_declaration(self.cluster_conn_id), self.selection)


def ticket_declaration(cluster_conn_id: str) -> TicketDeclaration:
    """Read which tickets of this connection are kept fresh, from `[kstream] tickets_folder`.

    Raises InvalidInput: when the folder does not exist, or the declaration is wrong.
    """
    return declaration_of(cluster_conn_id, settings.folder("tickets_folder"))
