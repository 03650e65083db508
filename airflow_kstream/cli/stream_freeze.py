"""`kstream streams freeze` and `unfreeze`: a person stops all that supervisors do in a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import note, say
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.freeze import NOT_FROZEN, freeze_length
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import what_falls_into_the_freeze

WhyFrozen = Annotated[str, typer.Option("--reason", help="Why; every supervisor shows it.")]
WhyLifted = Annotated[str, typer.Option("--reason", help="Why; kept for others to read.")]
Lasts = Annotated[
    str,
    typer.Option(
        "--for", metavar="DURATION", help="How long the freeze lasts (at most 7d; run `freeze` again to extend it)."
    ),
]
DespiteFreeze = Annotated[bool, typer.Option("--despite-freeze", help="Act although the cluster is frozen.")]


def freeze(cluster_name: ClusterOption, reason: WhyFrozen, lasts: Lasts = "4h") -> None:
    """Let no supervisor restart, start, stop or kill any stream of this state_dir until it expires.

    Supervisors go on watching. A stop that was begun before is not finished: a driver that has found its marker ends by
    itself, and its successor waits. A submission that was claimed before still arrives. Another freeze replaces this
    one, so that repeating the command renews it. The output names the streams whose credentials end meanwhile. Only a
    supervisor of the state_dir can freeze or unfreeze.
    """
    until = freeze_length("--for", lasts)
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        frozen = FreezeStore(session).freeze(until, reason)
        say(f"every stream of {_covered(session)} is {frozen}")
        for line in what_falls_into_the_freeze(session):
            say(line)


def unfreeze(cluster_name: ClusterOption, reason: WhyLifted = "") -> None:
    """Lift the freeze of this state_dir: supervisors go on from where everything stands."""
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        freezes = FreezeStore(session)
        was = freezes.newest()
        freezes.lift(reason)
        before = f"it was {was}" if was.holds(session.hdfs.now()) else "it was not frozen"
        say(f"{_covered(session)} is not frozen any longer; {before}")


def note_freeze(session: ClusterSession) -> None:
    """Tell beside the result that the cluster is frozen, if it is."""
    if frozen := frozen_words(session):
        note(frozen)


def frozen_words(session: ClusterSession) -> str:
    """Return that the cluster is frozen, if it is; else nothing."""
    frozen = FreezeStore(session).newest()
    return f"every stream of {_covered(session)} is {frozen}" if frozen.holds(session.hdfs.now()) else ""


def require_despite_freeze(run: StreamRun, *, despite_freeze: bool, tried: str) -> None:
    """Require --despite-freeze while the cluster is frozen. Raises Conflict: when it is frozen, without that option."""
    frozen = NOT_FROZEN if despite_freeze else run.freeze()
    if frozen.holds(run.session.hdfs.now()):
        advice = "give --despite-freeze to do it all the same, or run `kstream streams unfreeze` first"
        why = f"every stream of {_covered(run.session)} is {frozen}; {advice}"
        raise Conflict(why, tried=tried).passing(not frozen.doubt)


def _covered(session: ClusterSession) -> str:
    return f"{session.cluster.state_dir} on {session.cluster.default_fs}"
