"""Which generations leave no aggregated logs, and from when.

A NodeManager aggregates with the tokens of the application's first container (AppLogAggregatorImpl), and nobody
replaces those: neither YARN nor Spark with a keytab. Once they ended, it says "Skip log upload" and deletes the files.
Only a ResourceManager with proxy-user privileges hands it others (YARN-2704).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.stream_policies import RestartPolicy, StopPolicy
from airflow_kstream.policy.streams.horizon.horizon import issued_at


def logs_end(policy: RestartPolicy, claim: Claim | None, *, renewed: bool, privileged: bool) -> datetime | None:
    """Return from when an end of the claim's generation leaves no aggregated logs, by the tokens of its launch.

    None if that never comes, or is not known. `renewed` is whether the ResourceManager renews those tokens,
    `privileged` whether it makes others. Nodes that a job with a keytab reached later aggregate for longer.
    """
    issue = issued_at(claim, policy) if claim else None
    lifetimes = claim.credentials.lifetimes if claim else None
    if claim is None or lifetimes is None or issue is None or privileged:
        return None
    return issue + (lifetimes.max_lifetime if renewed else lifetimes.renew_interval)


def must_be_fetched(policy: StopPolicy, ends: datetime | None, now: datetime) -> bool:
    """Return whether the logs of a generation that is stopped now could be lost before it has ended."""
    return ends is not None and now + _longest_stop(policy) >= ends


def _longest_stop(policy: StopPolicy) -> timedelta:
    return policy.marker_grace + policy.quiescent_wait + policy.signal_grace + policy.kill_wait
