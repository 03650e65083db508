"""What ended a stream without its own fault: a server that was silent, or a cause that several streams share."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.generation_end import PastEnd
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.heartbeat import works


def one_cause(one: PastEnd, other: PastEnd) -> bool:
    """Return whether two ends have one cause: the same error, or the same silent server, which has many errors."""
    return one.fingerprint == other.fingerprint or bool(one.silent and one.silent == other.silent)


def continues(before: PastEnd | None, end: PastEnd) -> bool:
    """Return whether what the environment did to the last generation still lasts."""
    return before is not None and before.shared and one_cause(before, end) and not end.worked


def believed(end: PastEnd, *, spec_worked: bool) -> PastEnd:
    """Return the end as the environment's if it names a silent server, and its spec has worked before.

    One that never worked may name a server that does not exist.
    """
    return replace(end, shared=True) if end.silent and (end.worked or spec_worked) else end


def cause_of(end: PastEnd) -> str:
    """Say what the environment did."""
    return f"{end.silent} did not answer" if end.silent else "other streams ended of the same error"


def trouble(policy: FailurePolicy, observation: Observation) -> str:
    """Return what of the environment ended the stream, until a generation of it works again; empty if nothing did."""
    end = observation.ends[-1] if observation.ends else None
    if end is None or not end.shared or observation.desired.state is not DesiredState.RUNNING:
        return ""
    if observation.generation > end.generation and works(policy, observation):
        return ""
    return end.silent or end.fingerprint
