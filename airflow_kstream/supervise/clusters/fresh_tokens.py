"""Fresh delegation tokens, made and cancelled where they are issued: by a filesystem's NameNodes or by a KMS."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.token_mint import cancel_by_identifier, mint
from airflow_kstream.clients.kms import Kms, is_kms
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.fresh_token import FreshToken
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.rpc_conf import rpc_conf


def mint_at(issuer: str, cluster: Cluster, identity: Identity) -> FreshToken:
    """Make a token as this identity. Raises InvalidInput: when the connection has no conf folder with RPC addresses."""
    if is_kms(issuer):
        return Kms(issuer, identity, cluster.tls).mint()
    return mint(rpc_conf(cluster), issuer, identity)


def cancel_at(issuer: str, cluster: Cluster, identity: Identity, identifier: bytes) -> None:
    """Cancel a token of which only the identifier was kept."""
    if is_kms(issuer):
        Kms(issuer, identity, cluster.tls).cancel(identifier)
    else:
        cancel_by_identifier(rpc_conf(cluster), issuer, identity, identifier)
