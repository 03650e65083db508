"""Look at the tokens of a cluster that a declaration names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_kstream import metrics
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.kerberos.declarations import TokenDeclaration
from airflow_kstream.operators.retries import KstreamOperator, wrong_input_is_final
from airflow_kstream.policy.events.attention import token_hands
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.tokens.expiry import watched_tokens

if TYPE_CHECKING:
    from airflow.sdk import Context


class TokenLookOperator(KstreamOperator):
    """Look once at the tokens of applications that are not streams, and of credentials files, and return those that
    nobody can renew for much longer.

    An application's launch tokens are not visible from outside: their end is inferred from its start and from the
    lifetime that the cluster gives to a token, and is never later than the real one. One that outlives it makes its own
    tokens, and needs no hand. A file's tokens need one until the file is replaced. The result (XCom) has at most 100
    entries, which NeedsAHandOperator takes.

    What it does not do: it renews no token and stops no application. It sees the applications alone that the
    connection's principal may view.

    Example::

        look = TokenLookOperator(task_id="look", cluster_conn_id="prod", declared={"users": ["etl"], "within": "1d"})

    :param cluster_conn_id: the `kstream` connection.
    :param declared: the fields of a `TokenDeclaration`.
    """

    template_fields = ("cluster_conn_id", "declared")

    def __init__(self, *, cluster_conn_id: str, declared: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.declared = declared

    def execute(self, context: Context) -> list[dict[str, str]]:
        """Look, and return what somebody has to do. Raises Unavailable: when a server is away."""
        with wrong_input_is_final():
            declared = TokenDeclaration.from_mapping(self.declared)
            with (
                KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
                open_session(cluster, cluster.watcher) as session,
            ):
                seen = watched_tokens(session, declared)
        needed = token_hands(seen.tokens, seen.unread, seen.now, declared.within)
        self.log.info("%s tokens are watched; %s need a hand", len(seen.tokens) + len(seen.unread), len(needed))
        for hand in needed:
            self.log.warning("%s", hand.sentence)
        metrics.cluster_gauge("tokens_in_need", float(len(needed)), self.cluster_conn_id)
        return [hand.to_json() for hand in needed]
