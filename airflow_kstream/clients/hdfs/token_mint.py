"""Making delegation tokens over Hadoop's RPC: as owner and real user they name the principals that spark-submit's do.

Tokens that are made over WebHDFS name their owner by the short name and drop the real user of a proxy user, so that
NameNodes' audit logs no longer say who acted for them.
"""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import CLIENT_PROTOCOL, without_secrets
from airflow_kstream.clients.rpc.connection import RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.sasl import Protection, protections
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.protobuf import Message, encode
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import FreshToken
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN


def mint(conf: HadoopConf, filesystem: str, identity: Identity) -> FreshToken:
    """Make a token of `filesystem` for this identity, or for the user that it impersonates.

    Its principal is the renewer, and renews it once, which tells how long it lives: only the NameNode knows its renew
    interval. Renewer is the full principal: NameNodes take a short name as it is, and apply no auth_to_local to it.

    Raises Unavailable: when no NameNode is active. Raises CredentialError or Denied: when none lets us in, or makes
    none. A token that could not be renewed is left to expire.
    """
    return without_secrets(lambda: _mint(conf, filesystem, identity))


def cancel_by_identifier(conf: HadoopConf, filesystem: str, identity: Identity, identifier: bytes) -> None:
    """Cancel a token of which only the identifier was kept, as its owner.

    NameNodes compare no password at that (AbstractDelegationTokenSecretManager.cancelToken).
    """
    proto = encode({1: identifier, 2: b"", 3: HDFS_TOKEN, 4: ""})
    with closing(_namenode(conf, filesystem, identity)) as namenode:
        _call(namenode, "cancel a delegation token", "cancelDelegationToken", encode({1: proto}))


def crosses_in_clear(conf: HadoopConf) -> bool:
    """Return whether a token that is made over RPC can be read on its way: NameNodes demand no privacy."""
    return Protection.PRIVACY not in protections(conf.rpc_protection)


def token_service(conf: HadoopConf, filesystem: str) -> str:
    """Return the name by which Hadoop's clients look up a token of this filesystem (SecurityUtil.buildTokenService)."""
    if conf.is_pair(filesystem):
        return f"ha-hdfs:{filesystem.removeprefix('hdfs://')}"
    (address,) = conf.namenode_rpcs(filesystem)
    host, _, port = address.rpartition(":")
    if conf.get("hadoop.security.token.service.use_ip", "true").lower() == "false":
        return f"{host.lower()}:{port}"
    try:
        return f"{socket.gethostbyname(host)}:{port}"
    except OSError as error:
        raise InvalidInput(f"{host}, the NameNode of {filesystem}, has no address: {error.strerror}") from None


def _mint(conf: HadoopConf, filesystem: str, identity: Identity) -> FreshToken:
    service = token_service(conf, filesystem)
    with closing(_namenode(conf, filesystem, identity)) as namenode:
        request = encode({1: identity.principal})
        answer = _call(namenode, f"make a delegation token of {filesystem}", "getDelegationToken", request)
    if 1 not in answer:
        raise InvalidInput(f"the NameNodes of {filesystem} make no delegation tokens: they run without security")
    token = answer.data(1)
    return FreshToken(
        issuer=filesystem,
        service=service,
        identifier=Message(token).data(1),
        password=SecretBytes(Message(token).data(2)),
        until=_renewed(conf, filesystem, identity, token),
    )


def _renewed(conf: HadoopConf, filesystem: str, identity: Identity, token: bytes) -> datetime:
    with closing(_namenode(conf, filesystem, replace(identity, do_as=None))) as namenode:
        answer = _call(namenode, "renew a fresh delegation token", "renewDelegationToken", encode({1: token}))
    return datetime.fromtimestamp(answer.number(1) / 1000, UTC)


def _call(namenode: ActiveServer, tried: str, method: str, request: bytes) -> Message:
    (answer,) = namenode.call(tried, method, [request])
    if isinstance(answer, RemoteError):
        raise namenode.error(answer, tried)
    return answer


def _namenode(conf: HadoopConf, filesystem: str, identity: Identity) -> ActiveServer:
    terms = Terms(CLIENT_PROTOCOL, conf.namenode_principal, protections(conf.rpc_protection))
    return ActiveServer(conf.namenode_rpcs(filesystem), identity, terms)
