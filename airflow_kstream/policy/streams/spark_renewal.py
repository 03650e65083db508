"""The times at which a Spark driver with a keytab gets new tokens: HadoopDelegationTokenManager of Spark 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from airflow_kstream.model.tokens import USUAL_RENEWAL_RATIO

RATIO_CONF = "spark.security.credentials.renewalRatio"
# Spark gets tokens for these filesystems with an empty renewer (HadoopFSDelegationTokenProvider), which YARN leaves be.
NOT_RENEWED_CONF = "spark.yarn.kerberos.renewal.excludeHadoopFileSystems"


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
