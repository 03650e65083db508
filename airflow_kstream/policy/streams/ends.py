"""The cause of a generation's end, from YARN's diagnostics.

The signs are the words of Hadoop 3.4.3 (ClientRMService, RMAppAttemptImpl, RMAppLifetimeMonitor, SchedulerUtils,
ContainersMonitorImpl, ContainerExitStatus, SecretManager$InvalidToken, SaslRpcClient) and Spark 4
(ApplicationMaster). Words that a job's own libraries use as well, such as "token has expired", are no signs: a
delegation token's error names its class or its kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_kstream.model.generation_end import EndKind, GenerationEnd

_TOKEN_KINDS = (
    r"HDFS_DELEGATION_TOKEN|WEBHDFS delegation|SWEBHDFS delegation|YARN_AM_RM_TOKEN|RM_DELEGATION_TOKEN"
    r"|HIVE_DELEGATION_TOKEN|HBASE_AUTH_TOKEN|kms-dt|KAFKA_DELEGATION_TOKEN"
)


@dataclass(frozen=True)
class _Sign:
    """A pattern that proves a kind wherever it stands in the diagnostics."""

    kind: EndKind
    pattern: re.Pattern[str]


def _sign(kind: EndKind, *patterns: str) -> _Sign:
    return _Sign(kind, re.compile("|".join(patterns)))


# The first that is found counts: what YARN did to the application explains the error that the driver saw.
_SIGNS = (
    _sign(EndKind.LIFETIME, r"exceeded the lifetime period"),
    _sign(EndKind.PREEMPTED, r"exitCode:\s*-102\b", r"Container preempted by scheduler"),
    _sign(EndKind.NODE_LOST, r"exitCode:\s*-100\b", r"Container released on a \*lost\* node"),
    _sign(
        EndKind.MEMORY,
        r"exitCode:\s*-10[34]\b",
        r"beyond (?:the '\w+'|physical|virtual) memory limit",
        r"java\.lang\.OutOfMemoryError",
    ),
    _sign(
        EndKind.CREDENTIALS,
        r"SecretManager\$InvalidToken",
        r"Invalid AMRMToken",
        rf"(?:{_TOKEN_KINDS})[^\n]{{0,400}}?(?:can't be found in cache|is expired|has expired)",
        r"Client cannot authenticate via:\s?\[",
        r"GSS initiate failed",
        r"org\.ietf\.jgss\.GSSException",
    ),
    _sign(EndKind.AM_EXPIRED, r"ApplicationMaster for attempt \S+ timed out"),
    _sign(
        EndKind.INFRASTRUCTURE,
        # DISKS_FAILED: the NodeManager's.
        r"exitCode:\s*-101\b",
        r"org\.apache\.hadoop\.ipc\.StandbyException",
        r"SafeModeException",
        r"java\.net\.(?:ConnectException|NoRouteToHostException|UnknownHostException|SocketTimeoutException)",
        r"BlockMissingException",
        r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException)",
        r"NotEnoughReplicas",
        r"DSQuotaExceededException",
        r"NSQuotaExceededException",
    ),
    _sign(
        EndKind.CODE,
        r"User class threw exception",
        r"User application exited with status",
        r"Traceback \(most recent call last\)",
        r"StreamingQueryException",
    ),
)
# ClientRMService. A job's own words come after it.
_KILLED = re.compile(r"Application application_\S+ was killed by user (?P<user>\S+)")


def end_of(diagnostics: str) -> GenerationEnd:
    """Classify an end by YARN's diagnostics, which quote the job's own error at most in part."""
    if killed := _KILLED.search(diagnostics):
        return GenerationEnd(EndKind.KILLED, killed["user"])
    return GenerationEnd(next((sign.kind for sign in _SIGNS if sign.pattern.search(diagnostics)), EndKind.UNKNOWN))
