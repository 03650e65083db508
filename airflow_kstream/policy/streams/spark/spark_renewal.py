"""The times at which a Spark driver with a keytab gets new tokens: HadoopDelegationTokenManager of Spark 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.streams.renewal import TokenRound

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
