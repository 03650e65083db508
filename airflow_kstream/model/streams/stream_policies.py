"""The durations and ratios of a stream, grouped by purpose. The defaults suit a cluster with 7-day tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import STRICT, Age, Count, Factor, Pace, Patience, Share, ShareOrNone, Wait


@dataclass(frozen=True)
class RestartPolicy:
    """The rules for replacing a generation.

    A restart is planned at `plan_ratio` of a generation's life, earlier by up to `jitter_ratio` of it so that a fleet
    does not restart at once. From `force_margin` before the horizon it happens regardless of preflight. A generation is
    replaced at `max_age` even if its credentials last longer; None sets no such limit. The tokens of a job may be older
    than its start by up to `adopt_margin`.
    """

    __pydantic_config__ = STRICT

    plan_ratio: Share = 0.75
    jitter_ratio: ShareOrNone = 0.10
    force_margin: Wait = timedelta(hours=1)
    max_age: Age | None = None
    adopt_margin: Wait = timedelta(minutes=2)

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
    `silence`, or for longer if its batches come less often, up to `longest_silence`. `am_expiry` is the cluster's
    yarn.am.liveness-monitor.expiry-interval-ms: where the driver's node is lost, twice that time must pass as well.
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
    """The time that `spark-submit` may take, and the time after its claim in which an application may still arrive."""

    __pydantic_config__ = STRICT

    timeout: Patience = timedelta(minutes=5)
    ttl: Patience = timedelta(minutes=10)


class OnStall(StrEnum):
    """The reaction to a batch that hangs. Either way it is an event."""

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
    """

    __pydantic_config__ = STRICT

    every: Pace = timedelta(seconds=15)
    look_every: Pace = timedelta(seconds=2)
    recovery_wait: Wait = timedelta(minutes=2)
    blind_after: Patience = timedelta(minutes=5)
