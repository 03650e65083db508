"""The lives of a stream's generations, told by their claims and by the record of ends that nobody planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.generation_facts import Life


def lives(claims: Sequence[Claim], ends: Sequence[PastEnd], stops: Mapping[int, str]) -> tuple[Life, ...]:
    """Return a life for each claim, oldest first. `stops` are the reasons for which generations were asked to stop.

    A generation that no end is recorded of was replaced: it ended, at the latest, when its successor was claimed.
    """
    recorded = {end.generation: end for end in ends}
    return tuple(
        _life(claim, after, recorded.get(claim.generation), stops.get(claim.generation, ""))
        for claim, after in zip_longest(claims, claims[1:])
    )


def _life(claim: Claim, after: Claim | None, end: PastEnd | None, stop: str) -> Life:
    life = Life(
        claim.generation, claim.claimed_at, claim.claimed_by, claim.reason, claim.adoption.application is not None
    )
    if end is not None:
        words = f"{end.cause}; killed by {end.killed_by}" if end.killed_by else end.cause
        return replace(life, ended=end.at, end=words, planned=False)
    if after is None:
        return replace(life, end=stop)
    return replace(life, ended=after.claimed_at, end=stop or after.reason)
