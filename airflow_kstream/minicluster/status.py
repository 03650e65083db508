"""The status of daemons, and of pairs that lack an active member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_kstream.minicluster.site import Site

_NAMENODES = (
    "No NameNode is active, so clients of HDFS wait in vain. "
    "`kstream minicluster failover --root {root}` makes one active."
)
_RESOURCEMANAGERS = "No ResourceManager is active. They elect one in ZooKeeper 10 s after the active one was lost."


@dataclass(frozen=True)
class DaemonStatus:
    """A daemon's status. `state` is running, paused or dead; `answer` is its own, or why it does not serve."""

    name: str
    pid: int | None
    state: str
    address: str
    answer: str
    serves: bool


def without_active(site: Site, status: Iterable[DaemonStatus]) -> Iterator[str]:
    """Yield a sentence for each pair that has standbys and no active member, with what to do."""
    answers = {daemon.name: daemon.answer for daemon in status if daemon.serves}
    for members, sentence in ((site.namenodes, _NAMENODES), (site.resourcemanagers, _RESOURCEMANAGERS)):
        serving = [answers[name] for name in members if name in answers]
        if len(members) > 1 and serving and not any(answer.startswith("active") for answer in serving):
            yield sentence.format(root=site.plan.root)
