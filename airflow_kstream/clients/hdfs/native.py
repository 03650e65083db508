"""hdfs-native: how its client is made, and which of our errors its errors are."""

from __future__ import annotations

import os
import re

from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.clients.rpc.java_exceptions import error_of, simple_name
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    InvalidInput,
    KstreamError,
    NotFound,
    Unavailable,
)
from airflow_kstream.model.kerberos.identity import Identity

# What making a client raises, and most calls; a panic of the library's is a BaseException.
NATIVE_ERRORS = (RuntimeError, OSError, ValueError)
# Few attempts, because callers retry with a pause of their own. In random order, so that a client made after a silence
# has a chance to begin with the other NameNode.
_SETTINGS = {"dfs.client.failover.max.attempts": "3", "dfs.client.failover.random.order": "true"}
_EXCEPTIONS: tuple[tuple[type[BaseException], type[KstreamError]], ...] = (
    (FileNotFoundError, NotFound),
    # The library's translation of AlreadyBeingCreatedException.
    (FileExistsError, Conflict),
    (OSError, Unavailable),
)
# A RuntimeError's text is Rust's debug form of the library's own error.
_REMOTE = re.compile(r'(?:Fatal)?RPCError\("(?P<java>[^"]+)", "(?P<words>.*)"\)', re.DOTALL)
_SECURITY = re.compile(
    r'(?:GSSAPIError\(.*?\}, (?P<code>\d+), "(?P<words>.*)"\)|SASLError|NoSASLMechanism|InvalidArgument)', re.DOTALL
)
# KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE
_KDC_AWAY = {str(code & 0xFFFFFFFF) for code in (-1765328228, -1765328164)}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def require_native(cluster: Cluster, identity: Identity) -> None:
    """Check what hdfs-native needs. Raises InvalidInput: when it can't assume the identity, or has no conf folder."""
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} has no hadoop_conf_dir, which hdfs-native needs")
    if not (identity.keytab or identity.ticket_cache):
        raise InvalidInput(f"{identity.principal} has neither a keytab nor a ticket cache")
    # hdfs-native takes the impersonated user only from there, for the whole process.
    ambient = os.environ.get("HADOOP_PROXY_USER") or None
    if ambient != identity.do_as:
        raise InvalidInput(
            f"hdfs-native impersonates HADOOP_PROXY_USER, which is {ambient or 'not set'}, "
            f"but this connection impersonates {identity.do_as or 'nobody'}; use the backend hdfs-debug"
        )


def native_client(cluster: Cluster, identity: Identity) -> hdfs_native.Client:
    """Make a client; its realm is that of the process (KRB5_CONFIG). Raises one of NATIVE_ERRORS: when it can't."""
    return hdfs_native.Client(
        cluster.default_fs,
        _SETTINGS,
        cluster.hadoop_conf_dir,
        kerberos_principal=identity.principal,
        kerberos_keytab=identity.keytab,
        kerberos_cache=None if identity.keytab else identity.ticket_cache,
    )


def native_error(error: BaseException, tried: str, cluster: Cluster, identity: Identity) -> KstreamError:
    """Return which error of ours it is."""
    kind, words = _kind_and_words(error)
    return kind(words, tried=tried, server=cluster.default_fs, principal=str(identity))


def _kind_and_words(error: BaseException) -> tuple[type[KstreamError], str]:
    kind = next((ours for foreign, ours in _EXCEPTIONS if isinstance(error, foreign)), None)
    if kind:
        return kind, _words(str(error))
    if remote := _REMOTE.match(str(error)):
        return error_of(remote["java"]), f"{simple_name(remote['java'])}: {_words(_unescaped(remote['words']))}"
    if security := _SECURITY.match(str(error)):
        kind = Unavailable if security["code"] in _KDC_AWAY else CredentialError
        return kind, _unescaped(security["words"] or str(error))
    return Unavailable, f"hdfs-native failed: {_words(str(error)) or type(error).__name__}"


def _words(text: str) -> str:
    """Return the text on one line, without the Java stack trace after it."""
    return " ".join(text.partition("\n\tat ")[0].split("\n"))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)
