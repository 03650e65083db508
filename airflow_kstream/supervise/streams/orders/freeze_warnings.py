"""What a freeze of the cluster means for its streams."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.registry import stream_names
from airflow_kstream.supervise.streams.look.watch import Watch


def what_falls_into_the_freeze(session: ClusterSession) -> Iterator[str]:
    """Yield a line for each stream whose credentials end, or may end, while the cluster is frozen."""
    for name, verdict in sorted(Watch(session).round(stream_names(session)).items()):
        if verdict.people.freeze_warning:
            yield f"{name}: {verdict.people.freeze_warning}"
        elif verdict.step is None:
            yield f"{name}: whether its credentials end meanwhile is not known: {verdict.why}"
