"""`kstream streams freeze` and `unfreeze`: the brake of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import note, say
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.freeze import NOT_FROZEN, freeze_length
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.folder.brake import Brake
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.freeze_warnings import what_falls_into_the_freeze

WhyFrozen = Annotated[str, typer.Option("--reason", help="Why; every supervisor shows it.")]
WhyLifted = Annotated[str, typer.Option("--reason", help="Why; kept for others to read.")]
Lasts = Annotated[
    str, typer.Option("--for", metavar="DURATION", help="How long from now on, at most 7d; freeze again to prolong it.")
]
DespiteFreeze = Annotated[bool, typer.Option("--despite-freeze", help="Do it although somebody froze the cluster.")]


def freeze(cluster_name: ClusterOption, reason: WhyFrozen, lasts: Lasts = "4h") -> None:
    """Let no supervisor restart, start, stop or kill any stream of this state_dir until it expires.

    Supervisors go on watching. A stop that was begun before is not finished: a driver that has found its marker ends by
    itself, and its successor waits. A submission that was claimed before still arrives. Another freeze replaces this
    one, so that repeating the command renews it. The output names the streams whose credentials end meanwhile. Only a
    supervisor of the state_dir can freeze or unfreeze.
    """
    until = freeze_length("--for", lasts)
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        word = Brake(session).freeze(until, reason)
        say(f"every stream of {_covered(session)} is {word}")
        for line in what_falls_into_the_freeze(session):
            say(line)


def unfreeze(cluster_name: ClusterOption, reason: WhyLifted = "") -> None:
    """Lift the freeze of this state_dir: supervisors go on from where everything stands."""
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        brake = Brake(session)
        was = brake.newest()
        brake.lift(reason)
        before = f"it was {was}" if was.holds(session.hdfs.now()) else "it was not frozen"
        say(f"{_covered(session)} is not frozen any longer; {before}")


def note_freeze(session: ClusterSession) -> None:
    """Tell beside the result that the cluster is frozen, if it is."""
    word = Brake(session).newest()
    if word.holds(session.hdfs.now()):
        note(f"every stream of {_covered(session)} is {word}")


def require_word(run: StreamRun, *, despite_freeze: bool, tried: str) -> None:
    """Check that a person who acts on a frozen cluster says so. Raises Conflict: when it is frozen and they don't."""
    word = NOT_FROZEN if despite_freeze else run.freeze()
    if word.holds(run.session.hdfs.now()):
        advice = "give --despite-freeze to do it all the same, or run `kstream streams unfreeze` first"
        why = f"every stream of {_covered(run.session)} is {word}; {advice}"
        raise Conflict(why, tried=tried).passing(not word.doubt)


def _covered(session: ClusterSession) -> str:
    return f"{session.cluster.state_dir} on {session.cluster.default_fs}"
