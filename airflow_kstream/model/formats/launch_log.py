"""The tokens that a submission got, read from its client's log at INFO.

Hadoop's clients of HDFS and of a KMS tell each token that they get (DFSClient.getDelegationToken,
KMSClientProvider.getDelegationToken), Spark those of HBase (HBaseDelegationTokenProvider). It tells Hive's at DEBUG
alone since 2.2, as Kafka's, which has no date in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.streams.horizon import LaunchToken

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
