"""What a Spark driver does about its tokens, from its confs and its log.

With a keytab it gets new ones of every service in time (HadoopDelegationTokenManager of Spark 3 and 4). Without one it
keeps those of its submission: Spark gets one for each service that its confs name (HiveDelegationTokenProvider,
HBaseDelegationTokenProvider, KafkaDelegationTokenProvider and HadoopFSDelegationTokenProvider), and no server but the
connection's HDFS is asked when they end. What the client told of the others at the submission counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from airflow_kstream.model.kerberos.tokens import KMS_TOKEN, USUAL_RENEWAL_RATIO
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound, UncountedToken
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.launch_tokens import (
    HBASE,
    HIVE,
    KAFKA,
    counted_kinds,
    counts_filesystem,
    unknown_kinds,
)

RATIO_CONF = "spark.security.credentials.renewalRatio"
# Spark gets tokens for these filesystems with an empty renewer (HadoopFSDelegationTokenProvider), which YARN leaves be.
NOT_RENEWED_CONF = "spark.yarn.kerberos.renewal.excludeHadoopFileSystems"

# HadoopDelegationTokenManager.obtainTokensAndScheduleRenewal; times are milliseconds since 1970.
_ROUND = re.compile(
    r"Calculated delay on renewal is (?P<delay>-?\d{1,19}), based on next renewal (?P<end>\d{1,19})"
    r" and the ratio [\d.E-]{1,24},? and current time (?P<at>\d{1,15})"
)
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
# Without any token whose end is known, the next renewal is Long.MaxValue (SPARK-37787). No token lives that long.
_NEVER = timedelta(days=10 * 365)


@dataclass(frozen=True)
class _Service:
    """A service with the confs that name it. `provider` is Spark's name for what gets its tokens, those of `kind`."""

    name: str
    provider: str
    kind: str
    named_by: re.Pattern[str]
    ends: str


# A conf as `key=value`. Renew intervals count where no ResourceManager renews: it can renew tokens of HDFS and a KMS.
_SERVICES = (
    _Service(
        "the Hive metastore",
        "hive",
        HIVE,
        re.compile(r"spark\.sql\.catalogImplementation=hive|spark\.(hadoop\.)?hive\.metastore\.uris=.+"),
        "a day after its issue, unless hive.cluster.delegation.token.renew-interval says otherwise",
    ),
    _Service(
        "HBase",
        "hbase",
        HBASE,
        re.compile(r"spark\.hadoop\.hbase\.(security\.authentication=kerberos|zookeeper\.quorum=.+)"),
        "a week after its issue, unless hbase.auth.token.max.lifetime says otherwise",
    ),
    _Service(
        "Kafka's delegation tokens",
        "kafka",
        KAFKA,
        re.compile(r"spark\.kafka\.clusters\..+\.auth\.bootstrap\.servers=.+"),
        "a day after its issue, unless delegation.token.expiry.time.ms of the brokers says otherwise",
    ),
    _Service(
        "a KMS",
        "hadoopfs",
        KMS_TOKEN,
        re.compile(
            r"spark\.hadoop\.(hadoop\.security\.key\.provider\.path|dfs\.encryption\.key\.provider\.uri)=kms:.+"
        ),
        "a week after its issue, unless hadoop.kms.authentication.delegation-token.max-lifetime.sec says otherwise",
    ),
)
_FILESYSTEMS = (
    "spark.kerberos.access.hadoopFileSystems",
    "spark.yarn.access.hadoopFileSystems",
    "spark.yarn.access.namenodes",
)
_OFF = ("spark.security.credentials.{}.enabled", "spark.yarn.security.credentials.{}.enabled")


def rounds_in(log: str) -> tuple[TokenRound, ...]:
    """Return the rounds that a driver's log tells, oldest first; none where its level is above INFO.

    A provider that gets no tokens says so in a warning and gives no date, and the one of filesystems measures their
    renew interval once (HadoopFSDelegationTokenProvider): without any date the driver schedules nothing more.
    """
    return tuple(_round(found) for found in _ROUND.finditer(log))


def _round(found: re.Match[str]) -> TokenRound:
    at, end = int(found["at"]), int(found["end"])
    known = end - at < _NEVER / _MILLISECOND
    delay = timedelta(milliseconds=max(int(found["delay"]), 0)) if known else timedelta.max
    return TokenRound(_time(at), _time(end) if known else None, delay)


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def renewal_ratio(*confs: Mapping[str, str]) -> float:
    """Return the ratio of the last conf that sets a valid one; Spark's default if none does."""
    for conf in reversed(confs):
        try:
            ratio = float(conf[RATIO_CONF])
        except (KeyError, ValueError):
            continue
        if 0 < ratio <= 1:
            return ratio
    return USUAL_RENEWAL_RATIO


def tokens_are_renewed(filesystem: str, *confs: Mapping[str, str]) -> bool:
    """Return False if the last conf that says so excludes this filesystem. Spark compares the hosts alone."""
    excluded = next((conf[NOT_RENEWED_CONF] for conf in reversed(confs) if NOT_RENEWED_CONF in conf), "")
    return _host(filesystem) not in {_host(listed.strip()) for listed in excluded.split(",") if listed.strip()}


def _host(filesystem: str) -> str:
    try:
        return urlsplit(filesystem).hostname or filesystem
    except ValueError:
        return filesystem


def uncounted_tokens(
    spec: StreamSpec, connection_conf: Mapping[str, str], default_fs: str, tokens: tuple[LaunchToken, ...] = ()
) -> tuple[UncountedToken, ...]:
    """Return the services whose tokens may end first, as far as the confs or the known `tokens` of its launch name
    them; none if the job renews its own tokens, or a declared `restart.max_age` limits its life."""
    if spec.credentials.renews_itself or spec.restart.max_age is not None:
        return ()
    conf = {key: value.strip() for key, value in {**connection_conf, **spec.plain_conf}.items()}
    return (*_named(conf, tokens), *_filesystems(conf, default_fs, tokens))


def token_filesystems(spec: StreamSpec, connection_conf: Mapping[str, str], default_fs: str) -> tuple[str, ...]:
    """Return the filesystems of which Spark gets a token: the default one, and those that the job names, by its confs
    or by a checkpoint that lies there (`token_settings`)."""
    conf = {**connection_conf, **spec.plain_conf}
    named = ",".join(conf.get(key, "") for key in _FILESYSTEMS).split(",")
    roots = [*named, *("/".join(path.split("/", 3)[:3]) for path in spec.checkpoints)]
    hdfs = (root.strip().rstrip("/") for root in roots if root.strip().startswith("hdfs://"))
    return tuple(dict.fromkeys((default_fs.rstrip("/"), *(root for root in hdfs if root != "hdfs:"))))


def _named(conf: Mapping[str, str], tokens: tuple[LaunchToken, ...]) -> Iterator[UncountedToken]:
    said = [f"{key}={value}" for key, value in conf.items()]
    counted, unknown = counted_kinds(tokens), unknown_kinds(tokens)
    for service in _SERVICES:
        named = not _is_off(service, conf) and any(service.named_by.fullmatch(one) for one in said)
        if service.kind in unknown or (named and service.kind not in counted):
            yield UncountedToken(service.name, service.ends)


def _is_off(service: _Service, conf: Mapping[str, str]) -> bool:
    return any(conf.get(key.format(service.provider), "").lower() == "false" for key in _OFF)


def _filesystems(conf: Mapping[str, str], default_fs: str, tokens: tuple[LaunchToken, ...]) -> Iterator[UncountedToken]:
    listed = ",".join(conf.get(key, "") for key in _FILESYSTEMS).split(",")
    for filesystem in dict.fromkeys(one.strip().rstrip("/") for one in listed):
        counted = counts_filesystem(filesystem.partition("://")[2], tokens)
        if filesystem and filesystem != default_fs.rstrip("/") and not counted:
            yield UncountedToken(filesystem, "as that filesystem says, and only the connection's own is asked")
