"""A ticket for a task: acquired, renewed, looked at, and given to a child process that sees no other."""

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
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.ticket import Ticket
from airflow_kstream.supervise.tickets.declaration import TicketDeclaration, declaration_of
from airflow_kstream.supervise.tickets.renewal import ManagedTicket
from airflow_kstream.supervise.tickets.selection import TicketSelection, select_one, selected

# What a child process needs of this one's environment; no credential is among it.
INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "SPARK_HOME", "HADOOP_CONF_DIR")


class KerberosHook(BaseHook):
    """The ticket of one principal on the cluster of a `kstream` connection.

    The principal is the connection's own, one that `<connection id>.yaml` in `[kstream] tickets_folder` names,
    or any other whose keytab is given. Its cache is the one that the renewal keeps for it, so that what this hook
    acquires and what the renewal DAG renews are the same file; no two principals or clusters share one.

    What it does not do: it sets nothing in this process's own environment, where another task or library would find
    it, and does not renew by itself what it once acquired.

    A child process gets a ticket of its own::

        @task
        def report():
            with KerberosHook("prod", principal="etl@EXAMPLE.COM").environment() as env:
                SubprocessHook().run_command(["hdfs", "dfs", "-ls", "/"], env=env)

    `SparkSubmitHook(env_vars=...)` on YARN passes each variable on to the driver, who wants none of this host's:
    give it `environment(inherited=())`.

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param principal: whose ticket, if not the connection's own principal's.
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
        self.wish = TicketSelection(principal, keytab, cache)

    def principals(self) -> list[str]:
        """The connection's own and those of its declaration, whichever this hook is for."""
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            kept = selected(cluster, ticket_declaration(self.cluster_conn_id), TicketSelection())
        return [one.identity.principal for one in kept]

    def acquire(self) -> Ticket:
        """Put a ticket into the cache: from the keytab, or from the cache that the connection names.

        Readers see the old ticket or the whole other one. Raise CredentialError, leaving the cache as it was, or
        Unavailable when no KDC answers.
        """
        with self._kept() as kept:
            tickets.acquire(kept.identity, kept.cache)
            return _granting(kept)

    def renew(self) -> Ticket:
        """Let the KDC prolong the ticket in the cache, without a keytab; CredentialError where it can't be renewed."""
        with self._kept() as kept:
            return tickets.renew(kept.identity.principal, kept.cache)

    def ticket(self) -> Ticket:
        """The ticket-granting ticket in the cache, expired or not; CredentialError when there is none."""
        with self._kept() as kept:
            return _granting(kept)

    @contextmanager
    def identity(self) -> Iterator[Identity]:
        """For the clients of this package; a keytab that is kept in the connection lies there until the end."""
        with self._kept() as kept:
            yield kept.identity

    @contextmanager
    def environment(self, inherited: Sequence[str] = INHERITED) -> Iterator[dict[str, str]]:
        """The whole environment for a child process, with a cache of its own that is gone afterwards.

        KRB5CCNAME and KRB5_CONFIG, and what of this process's environment is named in `inherited`. The ticket serves
        for one ticket's life and is not renewed under the child. A JVM reads KRB5CCNAME but not KRB5_CONFIG: where
        krb5.conf is not the system's, give it `-Djava.security.krb5.conf` too.
        """
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster, private_folder() as private:
            kept = select_one(cluster, ticket_declaration(self.cluster_conn_id), self.wish)
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
            yield select_one(cluster, ticket_declaration(self.cluster_conn_id), self.wish)


def ticket_declaration(cluster_conn_id: str) -> TicketDeclaration:
    """Read whose tickets of this connection are kept fresh, from `[kstream] tickets_folder`.

    Raises InvalidInput: there is no such folder, or the declaration is wrong.
    """
    return declaration_of(cluster_conn_id, settings.folder("tickets_folder"))


def _granting(kept: ManagedTicket) -> Ticket:
    ticket = tickets.inspect(str(kept.cache)).granting
    if ticket is None:
        principal = kept.identity.principal
        raise CredentialError("it holds no ticket-granting ticket", tried=f"read {kept.cache}", principal=principal)
    return ticket
