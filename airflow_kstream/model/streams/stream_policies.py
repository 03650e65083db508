"""The durations and ratios of a stream, grouped by purpose, and Kafka as its source. The defaults suit a cluster with
7-day tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import (
    STRICT,
    Age,
    Brokers,
    Count,
    Factor,
    Pace,
    Patience,
    ServiceName,
    Share,
    ShareOrNone,
    Wait,
)

# Of each topic, of each partition.
Offsets = Mapping[str, Mapping[int, int]]
# Kafka's own rule for names (Topic.validate), and the numbers that its protocol can carry.
_TOPIC, _PARTITIONS = re.compile(r"[A-Za-z0-9._-]{1,249}"), range(2**31)


@dataclass(frozen=True)
class RestartPolicy:
    """The rules for replacing a generation.

    A restart is planned at `plan_ratio` of a generation's life, earlier by up to `jitter_ratio` of it so that a fleet
    does not restart at once. From `force_margin` before the horizon it happens regardless of preflight. A generation is
    replaced at `max_age` even if its credentials last longer; None sets no such limit. The tokens of a job may be older
    than its start by up to `adopt_margin`. A job that runs on, and whose new TaskManagers can't start any longer, is
    replaced for that only with `for_new_taskmanagers`: in its time, and never by force.

    Example::

        RestartPolicy(plan_ratio=0.5, max_age=timedelta(days=5))
    """

    __pydantic_config__ = STRICT

    plan_ratio: Share = 0.75
    jitter_ratio: ShareOrNone = 0.10
    force_margin: Wait = timedelta(hours=1)
    max_age: Age | None = None
    adopt_margin: Wait = timedelta(minutes=2)
    for_new_taskmanagers: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.jitter_ratio < self.plan_ratio:
            raise InvalidInput(f"restart.jitter_ratio is {self.jitter_ratio}; allowed is 0 up to plan_ratio")


@dataclass(frozen=True)
class RefreshPolicy:
    """The rules for pushing fresh tokens to a generation whose `credentials` say `refresh: true`.

    The tokens of its submission are left to the ResourceManager until the time at which a restart would be planned.
    From then on tokens are pushed, each time after `push_ratio` of their renew interval, or earlier where nobody may be
    there to push for `tolerate_absence`. Nobody but the pusher renews what was pushed, so that it ends one renew
    interval after the last push: an absence that is not shorter can't be tolerated, and the planned restart stays. A
    driver that does not answer within `confirm_within` is an event, and is restarted as if nothing were pushed.

    Example::

        RefreshPolicy(tolerate_absence=timedelta(hours=8))
    """

    __pydantic_config__ = STRICT

    push_ratio: Share = 0.5
    confirm_within: Patience = timedelta(minutes=5)
    tolerate_absence: Wait = timedelta()


@dataclass(frozen=True)
class FailurePolicy:
    """The pace of restarts after generations that ended by themselves.

    The first successor is submitted within `backoff` of the end, each further one within twice the time of the one
    before, up to `longest_backoff`; where in that time is random. A generation that lasted for `stable_after` and
    committed starts the count again. There are `per_day` restarts within 24 hours at most, and once half of them are
    used, one each `probe_every`. One error that ends `repeats` generations without a commit, the first and the last at
    least `repeated_over` apart, opens the stream's circuit breaker: one attempt each `probe_every`, until one commits
    or a person starts the stream. One error that ends `together` streams within `together_within` is the environment's:
    it costs no restart, opens no breaker, and its successor is submitted after `backoff` at the earliest and after ten
    times `backoff` at the latest. A job that ends successfully and is to run again waits for its turn in the same way,
    from the claim before, without jitter.

    Example::

        FailurePolicy(longest_backoff=timedelta(minutes=10), per_day=48)
    """

    __pydantic_config__ = STRICT

    backoff: Patience = timedelta(seconds=30)
    longest_backoff: Patience = timedelta(minutes=30)
    stable_after: Patience = timedelta(hours=1)
    per_day: Count = 24
    repeats: Count = 3
    repeated_over: Wait = timedelta(hours=1)
    probe_every: Patience = timedelta(hours=2)
    together: Count = 3
    together_within: Patience = timedelta(minutes=10)


@dataclass(frozen=True)
class StopPolicy:
    """The time that each means of ending a generation has, and the waits until an ended one counts as dead.

    Its driver's word or its containers' NodeManagers prove its death. If they can't, its checkpoint must be silent for
    `silence`, or for longer if its batches come less often, up to `longest_silence`, which does not bound
    checkpoints that come by the clock. `am_expiry` is the cluster's yarn.am.liveness-monitor.expiry-interval-ms: where
    the driver's node is lost, twice that time must pass as well.

    Example::

        StopPolicy(marker_grace=timedelta(minutes=10))
    """

    __pydantic_config__ = STRICT

    marker_grace: Wait = timedelta(minutes=3)
    quiescent_wait: Wait = timedelta(minutes=2)
    signal_grace: Wait = timedelta(minutes=1)
    kill_wait: Patience = timedelta(minutes=2)
    silence: Patience = timedelta(seconds=30)
    longest_silence: Patience = timedelta(minutes=30)
    am_expiry: Patience = timedelta(minutes=10)


@dataclass(frozen=True)
class SubmitPolicy:
    """The time that `spark-submit` may take, and the time after its claim in which an application may still arrive.

    Example::

        SubmitPolicy(timeout=timedelta(minutes=15), ttl=timedelta(minutes=20))
    """

    __pydantic_config__ = STRICT

    timeout: Patience = timedelta(minutes=5)
    ttl: Patience = timedelta(minutes=10)


class OnStall(StrEnum):
    """The reaction to a batch that hangs. Either way it is an event.

    Example::

        HeartbeatPolicy(on_stall=OnStall.RESTART)
    """

    REPORT = "report"
    RESTART = "restart"


@dataclass(frozen=True)
class HeartbeatPolicy:
    """The thresholds from which a query counts as stalled, and the reaction to it.

    Its first commit may take `start_timeout`. A batch may take `stall_floor`, or `stall_factor` times the duration of
    the longest batches in the query's own history, whichever is longer. An application that YARN accepted and has not
    started for `accept_timeout` is an event, and never a reason to kill it: its queue may be full.

    With `on_stall: restart`, a generation whose batch hangs is replaced, `stall_restarts_per_day` times within 24 hours
    at most. A batch that hangs again after that, and a start without a commit, are for a person.

    Example::

        HeartbeatPolicy(start_timeout=timedelta(minutes=30), on_stall=OnStall.RESTART)
    """

    __pydantic_config__ = STRICT

    start_timeout: Patience = timedelta(minutes=10)
    stall_floor: Patience = timedelta(minutes=10)
    stall_factor: Factor = 4.0
    accept_timeout: Patience = timedelta(minutes=10)
    on_stall: OnStall = OnStall.REPORT
    stall_restarts_per_day: Count = 3


@dataclass(frozen=True)
class WatchPolicy:
    """The interval between checks of a stream: `every` while it is well, `look_every` while a step is under way.

    For `recovery_wait` after a ResourceManager became active, its word that an older application is gone is not proof.
    While another ResourceManager can't be asked, an application counts as gone once it has been missing for as long.
    A stream about which nothing could be concluded for `blind_after` wakes its task, which looks with the stream's own
    rights.

    Example::

        WatchPolicy(every=timedelta(minutes=1))
    """

    __pydantic_config__ = STRICT

    every: Pace = timedelta(seconds=15)
    look_every: Pace = timedelta(seconds=2)
    recovery_wait: Wait = timedelta(minutes=2)
    blind_after: Patience = timedelta(minutes=5)


class KafkaProtocol(StrEnum):
    """The way in which brokers are spoken to: with SASL as a Kerberos principal, with SSL encrypted.

    Example::

        KafkaPolicy("broker1:9093", KafkaProtocol.SASL_SSL)
    """

    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"


@dataclass(frozen=True)
class KafkaPolicy:
    """The brokers of the topics that the stream reads, so that its watcher can ask where these end.

    `bootstrap_servers` are the brokers, and `security_protocol` is how they are spoken to. Without them, a query that
    plans no batch counts as IDLE whatever waits in its topics. The connection's principal asks, with Kerberos where the
    protocol is SASL, and needs no right but to describe the topics. The job's own way to Kafka is its own. In YAML it
    is `kafka: {bootstrap_servers: "broker1:9092,broker2:9092"}`.

    Example::

        KafkaPolicy("broker1:9092,broker2:9092")
    """

    __pydantic_config__ = STRICT

    bootstrap_servers: Brokers | None = None
    security_protocol: KafkaProtocol = KafkaProtocol.SASL_PLAINTEXT
    service_name: ServiceName = "kafka"

    @property
    def brokers(self) -> tuple[str, ...]:
        """Return each `host:port`."""
        return tuple(each.strip() for each in (self.bootstrap_servers or "").split(",") if each.strip())


@dataclass(frozen=True)
class Backlog:
    """The records that a query has not planned to read; None if that is not known, and `why` it is not."""

    records: int | None
    topics: tuple[str, ...] = ()
    why: str = ""


def planned_offsets(text: str) -> Offsets:
    """Return up to where a batch was planned to read each topic, from its file in `offsets/`; empty without Kafka.

    The file has a version, the batch's metadata, and a line for each source (Spark's OffsetSeqLog), which in version 2
    begins with the source's id; Kafka's is `{"topic":{"0":42}}` (JsonUtils.partitionOffsets).
    """
    found: dict[str, dict[int, int]] = {}
    for line in _sources(text):
        for topic, partition, offset in _of_kafka(line) or ():
            known = found.setdefault(topic, {})
            # One topic may be read twice: the source that is behind counts.
            known[partition] = min(offset, known.get(partition, offset))
    return found


def backlog(planned: Offsets, ends: Offsets) -> Backlog:
    """Return what waits beyond the planned offsets. A partition whose end is unknown counts for nothing."""
    waiting = {
        topic: sum(max(ends.get(topic, {}).get(number, offset) - offset, 0) for number, offset in partitions.items())
        for topic, partitions in planned.items()
    }
    return Backlog(sum(waiting.values()), tuple(sorted(topic for topic, records in waiting.items() if records)))


def reads_more(text: str) -> bool:
    """Return whether a batch was planned to read anything beside Kafka, from its file in `offsets/`."""
    return any(_of_kafka(line) is None for line in _sources(text))


def _sources(text: str) -> Iterator[str]:
    version, *lines = text.splitlines() or [""]
    for line in lines[1:]:
        yield line.partition(":")[2] if version == "v2" else line


def _of_kafka(line: str) -> list[tuple[str, int, int]] | None:
    """Return each topic and partition with its offset; None for another source's line: a number, a folder's log.

    The job's user may write anything.
    """
    try:
        topics = json.loads(line)
        found = [
            (str(topic), int(partition), int(offset))
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        ]
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    askable = all(_TOPIC.fullmatch(topic) and partition in _PARTITIONS for topic, partition, _ in found)
    return found if askable else None
