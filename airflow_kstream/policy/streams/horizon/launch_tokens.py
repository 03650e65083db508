"""For how long the tokens of a launch live, where that is known: nobody makes a job without a keytab another.

The ResourceManager renews what it has a TokenRenewer for, until the token's max date (DelegationTokenRenewer): those of
every HDFS, and of a KMS. Nobody can renew HBase's. Hive's has a renewer's name in it, but none in the ResourceManager:
it ends after one renew interval, which only the metastore knows. Kafka's has no date at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, KMS_TOKEN
from airflow_kstream.model.streams.launch_token import LaunchToken

HBASE, HIVE, KAFKA = "HBASE_AUTH_TOKEN", "HIVE_DELEGATION_TOKEN", "KAFKA_DELEGATION_TOKEN"
_RENEWED = {HDFS_TOKEN, KMS_TOKEN}
_PORT = 8020


def is_pushed(token: LaunchToken) -> bool:
    """Return whether a push brings another token in its place. One without a renewer is of a server far away."""
    return token.kind in _RENEWED and bool(token.renewer)


def known_life(token: LaunchToken) -> timedelta | None:
    """Return for how long its servers take the token, None if that is not known. Both times are its issuer's."""
    if token.kind != HBASE and not is_pushed(token):
        return None
    if token.issued is None or token.ends is None or token.ends <= token.issued:
        return None
    return token.ends - token.issued


def known_lives(tokens: tuple[LaunchToken, ...]) -> Iterator[tuple[LaunchToken, timedelta]]:
    """Yield the tokens whose lives are known, with these."""
    for token in tokens:
        if life := known_life(token):
            yield token, life


def issuers(tokens: tuple[LaunchToken, ...]) -> tuple[str, ...]:
    """Return the filesystems and the KMSs of the tokens that a push replaces."""
    return tuple(_issuer(token) for token in tokens if is_pushed(token))


def _issuer(token: LaunchToken) -> str:
    return f"hdfs://{token.service.removeprefix('ha-hdfs:')}" if token.is_hdfs else token.service


def counted_kinds(tokens: tuple[LaunchToken, ...]) -> frozenset[str]:
    """Return the kinds of tokens whose ends are all known."""
    unknown = unknown_kinds(tokens)
    return frozenset(token.kind for token in tokens) - unknown


def unknown_kinds(tokens: tuple[LaunchToken, ...]) -> frozenset[str]:
    """Return the kinds of which a token's end is not known."""
    return frozenset(token.kind for token in tokens if known_life(token) is None)


def counts_filesystem(authority: str, tokens: tuple[LaunchToken, ...]) -> bool:
    """Return whether the end of this HDFS's token is known; False if its token names it by an address."""
    host, _, port = authority.partition(":")
    services = {f"ha-hdfs:{authority}", f"{host}:{port or _PORT}"}
    return any(token.is_hdfs and token.service in services and known_life(token) for token in tokens)
