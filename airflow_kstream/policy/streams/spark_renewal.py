"""The times at which a Spark driver with a keytab gets new tokens: HadoopDelegationTokenManager of Spark 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_kstream.model.tokens import USUAL_RENEWAL_RATIO

RATIO_CONF = "spark.security.credentials.renewalRatio"


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
