"""A declared refresh of tokens in words, before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.stream import StreamSpec


def refresh_words(spec: StreamSpec, clear: tuple[str, ...], served: str) -> Iterator[str]:
    """Yield what `refresh` does to this stream; nothing if it is off. `clear` are the ways on which its tokens can be
    read by the network, `served` the jobs that take fresh ones."""
    if not spec.credentials.refresh:
        return
    if not spec.takes_tokens:
        yield (
            f"its tokens are not refreshed, because only {served} are served yet: it is restarted before they end, "
            "as without refresh; `kstream tokens push` gives its driver fresh ones by hand"
        )
        return
    policy = spec.refresh
    yield (
        "its tokens are refreshed: once a restart would be planned, fresh ones are pushed each "
        f"{policy.push_ratio:.0%} of their renew interval (a day by Hadoop's defaults), and its driver confirms them"
    )
    wanted = (
        f"; an absence of {format_duration(policy.tolerate_absence)} is to be tolerated, so they come earlier if needed"
        if policy.tolerate_absence
        else ""
    )
    yield (
        f"nobody need be there to push for {1 - policy.push_ratio:.0%} of a renew interval then, where planned "
        f"restarts leave {1 - spec.restart.plan_ratio:.0%} of a max-lifetime{wanted}"
    )
    for way in clear:
        yield f"pushed tokens cross the network in clear: {way}"
