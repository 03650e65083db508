"""Which configuration keys hold secrets, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "***"

# Spark's own spark.redaction.regex, and the words that Kafka and Hadoop use.
_SECRET = re.compile(
    r"secret|password|passwd|token|access[.]?key|api[-_.]?key|credential\.value|hmac|account\.key|encryption\.key|jaas\.config",
    re.IGNORECASE,
)
# Keys that match by a word and hold none: how long tokens live, which regex, which provider.
_HARMLESS = re.compile(r"(tokenConfRegex|\.enabled|renewalRatio|retryWait|lifetime|interval)$", re.IGNORECASE)


def is_secret(key: str) -> bool:
    return bool(_SECRET.search(key)) and not _HARMLESS.search(key)


def masked(conf: Mapping[str, str]) -> dict[str, str]:
    return {key: MASK if is_secret(key) else value for key, value in conf.items()}
