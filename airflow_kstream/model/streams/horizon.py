"""The moment at which a generation's credentials stop serving it, with the reason; and what it is concluded from.

For a job with a keytab these are the rounds of new tokens that its driver logs. For one without, they are the tokens of
its submission, read from its client's log at INFO: never the password or the identifier. Hadoop's clients of HDFS and
of a KMS tell each token that they get (DFSClient.getDelegationToken, KMSClientProvider.getDelegationToken), Spark those
of HBase (HBaseDelegationTokenProvider). Since 2.2 Spark tells Hive's and Kafka's at DEBUG alone; Kafka's has no date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN

# AbstractDelegationTokenIdentifier.toString, and HBase's AuthenticationTokenIdentifier.toString since 2.0.
_HADOOP = r"renewer=(?P<renewer>[^,=]*), realUser=[^,=]*, issueDate=(?P<issued>\d+), maxDate=(?P<ends>\d+)"
_HBASE = r"keyId=-?\d+, issueDate=(?P<issued>\d+), expirationDate=(?P<ends>\d+)"
_DATES = tuple(re.compile(each) for each in (_HADOOP, _HBASE))
# DFSClient says it by DelegationTokenIdentifier.stringifyToken, all others by Token.toString.
_SAYS = (
    re.compile(r"Created token for [^:]*: (?P<kind>\w+) (?P<identifier>owner=.*) on (?P<service>\S+)\s*"),
    re.compile(
        r"(?:New token created: \(|Get [Tt]oken from (?:HBase|hive metastore): )"
        r"Kind: (?P<kind>[^,]+), Service: (?P<service>[^,]*), Ident: (?P<identifier>.*)"
    ),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# More than any job has; a client that gets tokens in a loop must not fill a stream's folder.
_MOST, _LONGEST = 100, 300


class HorizonReason(StrEnum):
    TOKEN_MAX_LIFETIME = "the delegation token reaches its max-lifetime and nobody makes another"
    NOT_RENEWED = "the ResourceManager doesn't renew its delegation token (excludeHadoopFileSystems)"
    YARN_LIFETIME = "YARN ends the application at its lifetime limit"
    KEYTAB_ROTATED = "its keytab was rotated: it gets no new tokens with the one that it was submitted with"
    RENEWAL_ENDED = "its driver makes no more tokens: a round of new ones failed unnoticed (SPARK-37787)"
    SHORTER_TOKENS = "the cluster's tokens end before its driver replaces them: their renew interval was shortened"
    SERVICE_TOKEN = "a token of its launch ends before HDFS's, and nobody makes the job another"
    NO_NEW_WORKERS = "its new workers can't start once the tokens of its launch have ended"
    POLICY_MAX_AGE = "the restart policy's max_age"
    NOT_PUSHED = "the tokens that were pushed last end, and nobody pushes others"
    UNKNOWN = "when its credentials end is not known"
    NONE = "the job makes its own tokens from its keytab"


@dataclass(frozen=True)
class WorkerTokens:
    """The tokens with which a job's new workers start, where they are not the leader's newest.

    `worker` is the engine's word for one. They are those of the launch, which the ResourceManager renews if `renewed`.
    With a keeper beside the job that puts younger ones in their place, they serve until `kept_until`; `silent` is why
    nobody confirms any longer that it goes on, empty if it does.
    """

    worker: str
    renewed: bool = False
    kept_until: datetime | None = None
    silent: str = ""


@dataclass(frozen=True)
class Replacement:
    """The time for which a job can replace a worker that it loses: no end without an `until`, if that is `known`.

    The job runs on after that: it loses the ability to replace, and nothing else. `silent` is as in
    `WorkerTokens`.
    """

    worker: str
    until: datetime | None = None
    known: bool = True
    silent: str = ""

    def lost(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now

    def words(self, now: datetime) -> str:
        """Return the warning in words; empty if there is nothing to warn of."""
        if self.until is None:
            return ""
        moment = f"{self.until:%Y-%m-%d %H:%M} UTC"
        when = f"since {moment}" if self.lost(now) else f"from {moment} on"
        return f"{when} a {self.worker} that it loses can't be replaced, and it runs on without"


@dataclass(frozen=True)
class Horizon:
    """`hard` is when the credentials end, `plan` and `force` when we act before it.

    Without `hard` they never end by themselves (NONE), or nobody knows when (UNKNOWN). Between `plan` and `force` a
    restart waits for a good preflight, after `force` it doesn't; without `force` it always waits. `push` is when fresh
    tokens are due that would move it; None if none would. `token` names the token that ends first, if the reason does
    not. `replacement` is a warning beside it, which nobody acts upon; None where new workers need no token of its own.
    """

    reason: HorizonReason
    hard: datetime | None = None
    plan: datetime | None = None
    force: datetime | None = None
    push: datetime | None = None
    token: str = ""
    replacement: Replacement | None = None

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


@dataclass(frozen=True)
class TokenRound:
    """A round at `at`, whose tokens end at `tokens_end`; without one it got none that it knows the end of.

    `delay` is how long after it the driver wants the next one. Times are the clock of the driver's host.
    """

    at: datetime
    tokens_end: datetime | None
    delay: timedelta

    @property
    def is_last(self) -> bool:
        """Return True if no further round will come: the driver waits for millions of years (SPARK-37787)."""
        return self.tokens_end is None


@dataclass(frozen=True)
class LastRound:
    """The round after which a driver makes no more tokens, and when those of the round before it end, if that shows."""

    at: datetime
    tokens_end: datetime | None = None


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


def launch_tokens(log: str) -> tuple[LaunchToken, ...]:
    """Return the tokens that the log tells, each kind and service once, in its order.

    The first one counts: Spark gets a second one of each filesystem to measure how long a renewal lasts
    (HadoopFSDelegationTokenProvider), and does not submit it.
    """
    first: dict[tuple[str, str], LaunchToken] = {}
    for token in _told(log):
        first.setdefault((token.kind, token.service), token)
    return tuple(first.values())[:_MOST]


def _told(log: str) -> Iterator[LaunchToken]:
    for line in log.splitlines():
        said = next((found for each in _SAYS if (found := each.search(line))), None)
        if said and len(said["kind"]) <= _LONGEST and len(said["service"]) <= _LONGEST:
            yield _token(said["kind"], said["service"], said["identifier"])


def _token(kind: str, service: str, identifier: str) -> LaunchToken:
    dates = next((found.groupdict() for each in _DATES if (found := each.search(identifier))), {})
    issued, ends = (_moment(dates.get(name, "")) for name in ("issued", "ends"))
    return LaunchToken(kind, service, issued, ends, dates.get("renewer", ""))


def _moment(milliseconds: str) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=int(milliseconds))
    except (ValueError, OverflowError):
        return None
