"""The moment at which a generation's credentials stop serving it, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class HorizonReason(StrEnum):
    TOKEN_MAX_LIFETIME = "the delegation token reaches its max-lifetime and nobody makes another"
    NOT_RENEWED = "the ResourceManager doesn't renew its delegation token (excludeHadoopFileSystems)"
    YARN_LIFETIME = "YARN ends the application at its lifetime limit"
    KEYTAB_ROTATED = "its keytab was rotated: it gets no new tokens with the one that it was submitted with"
    RENEWAL_ENDED = "its driver makes no more tokens: a round of new ones failed unnoticed (SPARK-37787)"
    SHORTER_TOKENS = "the cluster's tokens end before its driver replaces them: their renew interval was shortened"
    SERVICE_TOKEN = "a token of its launch ends before HDFS's, and nobody makes the job another"
    POLICY_MAX_AGE = "the restart policy's max_age"
    NOT_PUSHED = "the tokens that were pushed last end, and nobody pushes others"
    UNKNOWN = "when its credentials end is not known"
    NONE = "the job makes its own tokens from its keytab"


@dataclass(frozen=True)
class Horizon:
    """`hard` is when the credentials end, `plan` and `force` when we act before it.

    Without `hard` they never end by themselves (NONE), or nobody knows when (UNKNOWN). Between `plan` and `force` a
    restart waits for a good preflight, after `force` it doesn't; without `force` it always waits. `push` is when fresh
    tokens are due that would move it; None if none would. `token` names the token that ends first, if the reason does
    not.
    """

    reason: HorizonReason
    hard: datetime | None = None
    plan: datetime | None = None
    force: datetime | None = None
    push: datetime | None = None
    token: str = ""

    @property
    def why(self) -> str:
        """Return the reason in words, with the token that it is about."""
        return f"{self.reason} ({self.token})" if self.token else self.reason

    def due(self, now: datetime) -> bool:
        return self.plan is not None and now >= self.plan

    def forced(self, now: datetime) -> bool:
        return self.force is not None and now >= self.force

    def passed(self, now: datetime) -> bool:
        return self.hard is not None and now >= self.hard

    def remaining(self, now: datetime) -> timedelta | None:
        return None if self.hard is None else self.hard - now
