"""What a Flink job's settings say of its tokens: when new ones are due, of which services it has any, which count.

A job with a keytab gets new ones of every provider in time. Any other keeps those of its submission: Flink gets one of
each provider that it finds (DelegationTokenProvider), and no server but HDFS is asked when they end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.streams.flink_conf import RATIO, named_filesystems
from airflow_kstream.model.streams.horizon import LaunchToken, UncountedToken
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.launch_tokens import (
    HBASE,
    HIVE,
    counted_kinds,
    counts_filesystem,
    unknown_kinds,
)

# Both names of a provider's settings, the older last.
_PREFIXES = ("security.delegation.token.provider.", "security.kerberos.token.provider.")
# Flink's name of a provider: the service, the kind of its tokens, and when they end.
_PROVIDERS = {
    "hbase": ("HBase", HBASE, "a week after its issue, unless hbase.auth.token.max.lifetime says otherwise"),
    "HiveServer2": (
        "the Hive metastore",
        HIVE,
        "a day after its issue, unless hive.cluster.delegation.token.renew-interval says otherwise",
    ),
    "s3-hadoop": ("S3", "", "as its session token says, which nobody replaces"),
    "s3-presto": ("S3", "", "as its session token says, which nobody replaces"),
}


def renewal_ratio(conf: Mapping[str, str]) -> float:
    """Return the share of a token's renew interval after which the JobManager makes the next one."""
    try:
        ratio = float(conf.get(RATIO, ""))
    except ValueError:
        return USUAL_RENEWAL_RATIO
    return ratio if 0 < ratio <= 1 else USUAL_RENEWAL_RATIO


def uncounted_tokens(
    spec: StreamSpec, conf: Mapping[str, str], default_fs: str, tokens: tuple[LaunchToken, ...] = ()
) -> tuple[UncountedToken, ...]:
    """Return the services whose tokens may end first, as far as the settings or the known `tokens` of its launch name
    them; none if the job renews its own tokens, or a declared `restart.max_age` limits its life."""
    if spec.credentials.renews_itself or spec.restart.max_age is not None:
        return ()
    return tuple(dict.fromkeys((*_of_providers(conf, tokens), *_of_filesystems(conf, default_fs, tokens))))


def _of_providers(conf: Mapping[str, str], tokens: tuple[LaunchToken, ...]) -> Iterator[UncountedToken]:
    counted, unknown = counted_kinds(tokens), unknown_kinds(tokens)
    for provider, (service, kind, ends) in _PROVIDERS.items():
        named = any(key.startswith(f"{prefix}{provider}.") for key in conf for prefix in _PREFIXES)
        off = any(conf.get(f"{prefix}{provider}.enabled", "").strip().lower() == "false" for prefix in _PREFIXES)
        if kind in unknown or (named and not off and kind not in counted):
            yield UncountedToken(service, ends)


def _of_filesystems(
    conf: Mapping[str, str], default_fs: str, tokens: tuple[LaunchToken, ...]
) -> Iterator[UncountedToken]:
    for filesystem in named_filesystems(conf):
        if filesystem != default_fs.rstrip("/") and not counts_filesystem(filesystem.partition("://")[2], tokens):
            yield UncountedToken(filesystem, "as that filesystem says, and only the connection's own is asked")
