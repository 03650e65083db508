"""Delegation tokens: honoured, renewed, cancelled and read from jobs' credentials files over WebHDFS; made over RPC.

A token made over RPC names the same principals as one that spark-submit gets, as owner and real user. One made over
WebHDFS names its owner by the short name and drops the real user of a proxy user: the NameNodes' audit logs would no
longer say who acted for that user.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import requests

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.http import http_errors, keep_tokens_out_of_logs
from airflow_kstream.clients.local.credential_files import MAX_BYTES
from airflow_kstream.clients.rpc.connection import RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.sasl import Protection, protections
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS, USUAL, limit_whole_answers
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.formats.protobuf import Message, encode
from airflow_kstream.model.formats.token import SecretBytes, Span
from airflow_kstream.model.kerberos.credentials_file import FreshToken, HadoopCredentials
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, decoded_url_string

CLIENT_PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
_BEARER = Identity("the token's bearer")
_ASK = "ask whether a token is honoured"
_Result = TypeVar("_Result")


def ask_why_refused(namenodes: tuple[str, ...], token: SecretBytes, verify: str | bool) -> str:
    """Return why the active NameNode refuses the bearer of this token, in its words; empty when it honours the token.

    It needs no ticket and changes nothing: it looks up the bearer's home folder, which need not exist.
    Raises Unavailable: when no NameNode is active.
    """
    said = []
    for address in namenodes:
        try:
            return _without_frames(partial(_ask_as_bearer, address, token, verify))
        except KstreamError as error:
            said.append(f"{address}: {error.message}")
    raise Unavailable("; ".join(said), tried=_ASK)


def renew(hdfs: Hdfs, token: SecretBytes) -> datetime:
    """Renew it and return its new expiry, by the NameNode's clock. Only its renewer may, compared by short name."""
    return _without_frames(lambda: hdfs.renew_token(_in_clear(token)))


def cancel(hdfs: Hdfs, token: SecretBytes) -> None:
    """Cancel it, as its renewer, or as the owner of a token that was issued over WebHDFS."""
    _without_frames(lambda: hdfs.cancel_token(_in_clear(token)))


def cancel_over_rpc(conf: HadoopConf, identity: Identity, token: SecretBytes) -> None:
    """Cancel it, as its renewer, or as the owner of a token that was issued over RPC.

    Such a token names its owner by the principal. WebHDFS knows its callers only by their short names, so that none of
    them can be that owner.
    """
    terms = Terms(CLIENT_PROTOCOL, conf.namenode_principal, protections(conf.rpc_protection))
    with closing(ActiveServer(conf.namenode_rpcs(), identity, terms)) as namenode:
        _without_frames(partial(_cancel, namenode, token))


def _without_frames(call: Callable[[], _Result]) -> _Result:
    """Call it, and raise our errors without the frames and causes below, whose variables hold the token in clear."""
    try:
        return call()
    except KstreamError as error:
        told = type(error)(error.message, tried=error.tried, server=error.server, principal=error.principal)
    raise told


def _ask_as_bearer(address: str, token: SecretBytes, verify: str | bool) -> str:
    keep_tokens_out_of_logs()
    with http_errors(_ASK, address, _BEARER), requests.Session() as session:
        session.trust_env = False
        session.verify = verify
        limit_whole_answers(session, USUAL.whole)
        answer = session.get(
            f"{address}/webhdfs/v1/",
            params={"op": "GETHOMEDIRECTORY", "delegation": _in_clear(token)},
            timeout=CONNECT_AND_READ_SECONDS,
            allow_redirects=False,
        )
        return "" if answer.status_code == requests.codes.ok else _refusal(address, answer)


def _refusal(address: str, answer: requests.Response) -> str:
    exception = _remote_exception(answer)
    words = str(exception.get("message", "")).partition("\n")[0]
    # It comes wrapped in the SecurityException of the code that looked up the user.
    if "InvalidToken" in f"{exception.get('exception')} {words}":
        return words.rpartition("InvalidToken: ")[2]
    reason = f"it answered {answer.status_code}: {words or 'without a reason'}"
    raise Unavailable(reason, tried=_ASK, server=address, principal=str(_BEARER))


def _remote_exception(answer: requests.Response) -> dict[str, Any]:
    try:
        return dict(answer.json()["RemoteException"])
    except (ValueError, KeyError, TypeError):
        return {}


def _cancel(namenode: ActiveServer, token: SecretBytes) -> None:
    tried = "cancel a delegation token"
    (answer,) = namenode.call(tried, "cancelDelegationToken", [encode({1: _token_proto(token)})])
    if isinstance(answer, RemoteError):
        raise namenode.error(answer, tried)


def _token_proto(token: SecretBytes) -> bytes:
    """Encode a TokenProto: identifier, password, kind, service, in the same order as in the Writable."""
    raw = Span(decoded_url_string(token))
    return encode({number: raw.sized("a part of the token").reveal() for number in range(1, 5)})


def _in_clear(token: SecretBytes) -> str:
    return token.reveal().decode()


class CredentialHdfs(Hdfs):
    """A reader of credentials files. It keeps only the parts that are not secret."""

    def credentials(self, path: str) -> HadoopCredentials:
        """Read the file at this path, in either format, or a text with one token in its URL form.

        Raises InvalidInput: when the content is malformed, naming the byte where it stops making sense, or exceeds
        `MAX_BYTES`; and the errors of Hdfs.
        """
        content: SecretBytes = self._ask(f"read {path}", lambda: self._content(path))
        if len(content) > MAX_BYTES:
            raise InvalidInput(f"{path} has more than {MAX_BYTES} bytes, which no credentials file has")
        try:
            return HadoopCredentials.read(content)
        except InvalidInput as error:
            raise InvalidInput(f"{path} can't be read as Hadoop credentials: {error.message}") from None

    def _content(self, path: str) -> SecretBytes:
        with self._client.read(plain_path(path), length=MAX_BYTES + 1) as reader:
            return SecretBytes(reader.read())


def mint(conf: HadoopConf, filesystem: str, identity: Identity, renewer: str = "") -> FreshToken:
    """Make a token of `filesystem` for this identity, or for the user that it impersonates.

    Without a `renewer`, that is its principal, and renews it once, which tells how long it lives: only the NameNode
    knows its renew interval. Of one that another principal renews, its max-lifetime is all that can be told. Renewer is
    the full principal: NameNodes take a short name as it is, and apply no auth_to_local to it.

    Raises Unavailable: when no NameNode is active. Raises CredentialError or Denied: when none lets us in, or makes
    none. A token that could not be renewed is left to expire.
    """
    return _without_frames(lambda: _mint(conf, filesystem, identity, renewer))


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


def _mint(conf: HadoopConf, filesystem: str, identity: Identity, renewer: str) -> FreshToken:
    service = token_service(conf, filesystem)
    with closing(_namenode(conf, filesystem, identity)) as namenode:
        request = encode({1: renewer or identity.principal})
        answer = _call(namenode, f"make a delegation token of {filesystem}", "getDelegationToken", request)
    if 1 not in answer:
        raise InvalidInput(f"the NameNodes of {filesystem} make no delegation tokens: they run without security")
    token = answer.data(1)
    identifier, password = Message(token).data(1), SecretBytes(Message(token).data(2))
    fresh = FreshToken(filesystem, service, identifier, password, until=datetime.max.replace(tzinfo=UTC))
    return replace(fresh, until=fresh.read.max_date if renewer else _renewed(conf, filesystem, identity, token))


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
