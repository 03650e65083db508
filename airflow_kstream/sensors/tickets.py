"""Wait until a Kerberos ticket is about to expire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk.configuration import conf

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.kerberos import ticket_declaration
from airflow_kstream.sensors.awaiting import AwaitingSensor
from airflow_kstream.supervise.tickets.expiry import TicketExpiryCondition, check
from airflow_kstream.supervise.tickets.managed import TicketSelection, selected
from airflow_kstream.triggers.tickets import TicketExpiryTrigger


class KerberosTicketExpirySensor(AwaitingSensor):
    """A wait until a ticket has at most `within` left, has expired, or is missing from its cache.

    The caches are those that the renewal keeps: the connection's own and those of its declaration, or one of them.
    The result (XCom) lists the principals, with the state and the expiry of each, the most urgent first, at most 20.

    What it does not do: it contacts no KDC, and renews nothing; KerberosTicketRenewOperator does. It sees the files of
    the host where it polls: worker and triggerer must see the same.

    Example::

        KerberosTicketExpirySensor(task_id="expiring", cluster_conn_id="prod", within="2h", deferrable=True)

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param principal: watch only this one.
    :param cache: the absolute path of its ticket cache, if it is not the one that the renewal keeps.
    :param within: a duration such as `1h`.
    :param deferrable: wait in the triggerer and hold no worker slot.
    :raises AirflowFailException: when the declaration, the principal, the path or the duration is wrong.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "principal", "cache", "within")

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        principal: str | None = None,
        cache: str | None = None,
        within: str | timedelta = "1h",
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, deferrable=deferrable, **kwargs)
        self.principal = principal
        self.cache = cache
        self.within = within

    def poll(self) -> tuple[bool, dict[str, Any]]:
        """Read the caches; one that can't be read counts as missing, and so ends the wait."""
        checked = check(self._awaited())
        self.log.info("%s", checked.words)
        return bool(checked.due), checked.report()

    def trigger(self) -> TicketExpiryTrigger:
        return TicketExpiryTrigger(self._awaited().to_mapping(), self.poke_interval)

    def _awaited(self) -> TicketExpiryCondition:
        selection = TicketSelection(self.principal or None, cache=self.cache or None)
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            kept = selected(cluster, ticket_declaration(self.cluster_conn_id), selection)
        caches = [{"principal": ticket.principal, "cache": str(ticket.cache)} for ticket in kept]
        return TicketExpiryCondition.from_mapping({"caches": caches, "within": self.within})
