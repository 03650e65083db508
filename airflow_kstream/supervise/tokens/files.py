"""Tokens in files, and their use on the cluster that issued them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs import tokens
from airflow_kstream.clients.local.credential_files import CredentialFile, read_credentials, url_string
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, KstreamError
from airflow_kstream.model.kerberos.tokens import DelegationToken, Opaque, Token
from airflow_kstream.model.plain import fields_of
from airflow_kstream.supervise.clusters.session import ClusterSession

_NOT_KNOWN = "can't be found in cache"
_UNKNOWN_AT_CANCEL = "InvalidToken: Token not found"
# By the words of Hadoop's AbstractDelegationTokenSecretManager; ours are put before them.
_REFUSALS: tuple[tuple[str, type[KstreamError], str], ...] = (
    (
        "tried to renew an expired token",
        CredentialError,
        "it reached its max date, {0.max_date:%Y-%m-%d %H:%M:%S %Z}, beyond which nothing renews it: get a new token",
    ),
    ("with non-matching renewer", Denied, "only its renewer {0.renewer!r} may renew it"),
    ("without a renewer", Denied, "it was issued without a renewer, so nobody may renew it: get a new token"),
    (
        "unknown token",
        CredentialError,
        "the NameNode no longer knows it (cancelled, or not renewed in time): get a new one",
    ),
    (
        "is not authorized to cancel",
        Denied,
        "only its owner {0.owner!r} and its renewer {0.renewer!r} may cancel it; an owner with a realm is known as "
        "such over RPC alone, for which the connection needs hadoop_conf_dir",
    ),
)


@dataclass(frozen=True)
class TokenValidity:
    """The NameNode's answer about a token: valid, invalid, or None if it could not be asked; `detail` is the reason."""

    honoured: bool | None
    detail: str


@dataclass(frozen=True)
class CheckedFile:
    """A credentials file at one moment; `validities` are those of its tokens, in file order, if a cluster was asked."""

    file: CredentialFile
    now: datetime
    validities: tuple[TokenValidity, ...] = ()

    @property
    def rows(self) -> Iterator[tuple[Token, TokenValidity | None]]:
        return zip_longest(self.file.credentials.tokens, self.validities)

    def to_json(self) -> dict[str, Any]:
        """Return plain data without any secret; A token has `namenode` only if its cluster was asked."""
        tokens = [
            {**token.to_json(self.now), **({"namenode": fields_of(validity)} if validity else {})}
            for token, validity in self.rows
        ]
        return {**self.file.to_json(self.now), "tokens": tokens}


def validities(cluster: Cluster, file: CredentialFile) -> Iterator[TokenValidity]:
    """Yield one for each token, in file order. Changes nothing, needs no ticket, and raises nothing."""
    return (_validity(cluster, file, token) for token in file.credentials.tokens)


def _validity(cluster: Cluster, file: CredentialFile, token: Token) -> TokenValidity:
    if obstacle := _obstacle(cluster, token):
        return TokenValidity(None, f"not asked: {obstacle}")
    try:
        why = tokens.ask_why_refused(cluster.namenodes, url_string(file.path, token), cluster.tls.verify)
    except KstreamError as error:
        return TokenValidity(None, f"no answer: {error.message}")
    if not why:
        return TokenValidity(True, "honours it")
    forgotten = "cancelled, or expired without a renewal: " if _NOT_KNOWN in why else ""
    return TokenValidity(False, f"refuses it: {forgotten}{why}")


@dataclass(frozen=True)
class ChosenToken:
    """One token of a file, which a NameNode of the cluster at hand issued."""

    path: Path
    token: Token
    identifier: DelegationToken

    @property
    def name(self) -> str:
        """Name the token as the NameNode's audit log does."""
        return f"{self.token.kind} {self.identifier.sequence_number} of {self.identifier.owner}"


def choose(cluster: Cluster, path: Path, alias: str | None) -> ChosenToken:
    """Return the token of this alias, or without one the only token in the file that a NameNode issued.

    Raises InvalidInput: when there is none or several, or when it is another cluster's: its password is not sent.
    """
    candidates = [token for token in read_credentials(path).credentials.tokens if token.is_of_namenode]
    chosen = [token for token in candidates if alias in (None, token.alias)]
    if len(chosen) != 1:
        aliases = ", ".join(repr(token.alias) for token in candidates) or "none"
        which = "in all" if alias is None else f"with alias {alias!r}"
        raise InvalidInput(f"{path} has {len(chosen)} tokens of a NameNode {which}; name one by --alias, of: {aliases}")
    (token,) = chosen
    obstacle = _obstacle(cluster, token)
    if obstacle or not isinstance(token.identifier, DelegationToken):
        raise InvalidInput(f"the {token.kind} in {path} is not sent to cluster {cluster.name}: {obstacle}")
    return ChosenToken(path, token, token.identifier)


def renew(session: ClusterSession, chosen: ChosenToken) -> datetime:
    """Renew as `session`'s identity, which must be the token's renewer, and return the new expiry.

    Raises CredentialError: when it is past its max date, or unknown. Raises Denied: when we are not its renewer.
    """
    try:
        return tokens.renew(session.hdfs, url_string(chosen.path, chosen.token))
    except Denied as error:
        raise _explained(error, chosen) from None


def cancel(session: ClusterSession, chosen: ChosenToken) -> bool:
    """Cancel as `session`'s identity, the token's owner or renewer; False if the NameNode no longer knew it.

    From then on the NameNode refuses the token. The request goes over WebHDFS, or over RPC if the owner is a principal
    and the connection has a Hadoop conf folder: only RPC knows a principal by its full name.
    """
    token, conf = url_string(chosen.path, chosen.token), _rpc_conf(session.cluster)
    try:
        if conf and "@" in chosen.identifier.owner:
            tokens.cancel_over_rpc(conf, session.identity, token)
        else:
            tokens.cancel(session.hdfs, token)
    except Denied as error:
        if error.message.startswith(_UNKNOWN_AT_CANCEL):
            return False
        raise _explained(error, chosen) from None
    return True


def _rpc_conf(cluster: Cluster) -> HadoopConf | None:
    """Return the folder with the RPC addresses, if there is one for the cluster's filesystem."""
    conf = HadoopConf(cluster.hadoop_conf_dir) if cluster.hadoop_conf_dir else None
    return conf if conf and conf.default_fs == cluster.default_fs.rstrip("/") else None


def _explained(error: Denied, chosen: ChosenToken) -> KstreamError:
    for sign, kind, words in _REFUSALS:
        if sign in error.message:
            why = f"{words.format(chosen.identifier)} ({error.message})"
            return kind(why, tried=f"{error.tried}, {chosen.name}", server=error.server, principal=error.principal)
    return error


def _obstacle(cluster: Cluster, token: Token) -> str:
    """Return why this token must not be sent to this cluster's NameNodes; empty if they issued it."""
    if not token.is_of_namenode:
        return "NameNodes don't issue this kind"
    if isinstance(token.identifier, Opaque):
        return f"its identifier can't be read: {token.identifier.why}"
    if not _issued_by(cluster, token.service):
        return f"its service {token.service!r} is none of {', '.join((cluster.default_fs, *cluster.namenodes))}"
    return ""


def _issued_by(cluster: Cluster, service: str) -> bool:
    """Compare the nameservice of `ha-hdfs:name`, else the host alone: the port may be the RPC's or the web server's."""
    scheme, _, nameservice = service.partition(":")
    if scheme.startswith("ha-"):
        return nameservice == urlsplit(cluster.default_fs).netloc
    host = service.rpartition(":")[0].strip("[]")
    return bool(host) and host in _hosts(cluster)


def _hosts(cluster: Cluster) -> set[str]:
    """Return the NameNodes' names and addresses: hadoop.security.token.service.use_ip decides which Hadoop writes."""
    # The authority of a default filesystem without a port is a nameservice, not a host.
    servers = [url for url in map(urlsplit, (*cluster.namenodes, cluster.default_fs)) if url.port]
    names = {url.hostname or "" for url in servers}
    return names | {address for name in names for address in _addresses(name)}


def _addresses(host: str) -> set[str]:
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return set()
