"""A token that a job without a keytab was submitted with, as its client told: never the password or the identifier."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN


@dataclass(frozen=True)
class LaunchToken:
    """One token of a launch. `service` is Hadoop's name for who takes it, such as `ha-hdfs:there`; empty for Hive's.

    `issued` and `ends` are by the issuer's clock, None if the client did not tell: from `ends` on nobody takes the
    token, however often it was renewed. Without a `renewer` nobody can renew it.
    """

    kind: str
    service: str
    issued: datetime | None = None
    ends: datetime | None = None
    renewer: str = ""

    @property
    def is_hdfs(self) -> bool:
        return self.kind == HDFS_TOKEN

    def __str__(self) -> str:
        return f"{self.kind} of {self.service}" if self.service else self.kind


@dataclass(frozen=True)
class UncountedToken:
    """A service whose token may end before the horizon, and when that is by the service's own defaults."""

    service: str
    ends: str

    def __str__(self) -> str:
        return (
            f"its conf names {self.service}, and the horizon does not count the end of a token of it: {self.ends}. "
            "restart.max_age sets a limit"
        )
