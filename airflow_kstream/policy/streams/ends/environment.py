"""What ended a stream without its own fault: a server that was silent, or a cause that several streams share.

In safe mode a driver can't leave its error on HDFS, nor a NodeManager its log: the proof is lost together with the
server. Who was refused at about that time has another one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.safe_mode import SafeMode
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.pulse.heartbeat import works

# Of a NameNode (FSNamesystem.newSafemodeException, which HA wraps in a RetriableException).
_SAFE_MODE = re.compile(r"\bSafeModeException\b")
# Refusals that lie further apart are of two safe modes.
_APART = timedelta(minutes=15)
# Ends with an exit code, and no other word.
_NAMELESS = {EndKind.CODE, EndKind.UNKNOWN}


def tells_safe_mode(words: str) -> bool:
    """Return whether a failure of these words shows that HDFS is in safe mode."""
    return _SAFE_MODE.search(words) is not None


def refused(before: SafeMode | None, now: datetime) -> SafeMode:
    """Return when HDFS was last known to be in safe mode, after one more refusal."""
    return replace(before, until=now) if before and now - before.until <= _APART else SafeMode(now, now)


def in_safe_mode(policy: FailurePolicy, end: PastEnd, known: SafeMode | None) -> PastEnd:
    """Return the end as one of a silent HDFS, if nothing names its error and HDFS was in safe mode at about that time.

    A job whose error is known ended of that.
    """
    named = end.fingerprint or end.clues.silent or end.killed_by or end.clues.log_error
    if known is None or named or end.kind not in _NAMELESS or not known.covers(end.at, policy.together_within):
        return end
    return replace(end, clues=replace(end.clues, silent="HDFS"))


def one_cause(one: PastEnd, other: PastEnd) -> bool:
    """Return whether two ends have one cause: the same error, or the same silent server, which has many errors."""
    return one.fingerprint == other.fingerprint or bool(one.clues.silent and one.clues.silent == other.clues.silent)


def continues(before: PastEnd | None, end: PastEnd) -> bool:
    """Return whether what the environment did to the last generation still lasts."""
    return before is not None and before.shared and one_cause(before, end) and not end.worked


def believed(end: PastEnd, *, spec_worked: bool) -> PastEnd:
    """Return the end as the environment's if it names a silent server, and its spec has worked before.

    One that never worked may name a server that does not exist.
    """
    return replace(end, shared=True) if end.clues.silent and (end.worked or spec_worked) else end


def cause_of(end: PastEnd) -> str:
    """Say what the environment did."""
    return f"{end.clues.silent} did not answer" if end.clues.silent else "other streams ended of the same error"


def trouble(policy: FailurePolicy, observation: Observation) -> str:
    """Return what of the environment ended the stream, until a generation of it works again; empty if nothing did."""
    end = observation.folder.ends[-1] if observation.folder.ends else None
    if end is None or not end.shared or observation.desired.state is not DesiredState.RUNNING:
        return ""
    if observation.generation > end.generation and works(policy, observation):
        return ""
    return end.clues.silent or end.fingerprint
