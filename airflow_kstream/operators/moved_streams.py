"""Streams whose DAG has another id than before, since `[kstream] dag_id_prefix` changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from airflow.sdk import Variable

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.printable import printable_line
from airflow_kstream.model.streams.event import ToldSubject
from airflow_kstream.states.tasks import is_watched
from airflow_kstream.supervise.clusters.told import ToldNotes

log = logging.getLogger(__name__)

_KEY = "dag_ids"
# As Airflow has it.
_LONGEST_ID = 250


@dataclass(frozen=True)
class MovedStreams:
    """The declared streams of a folder whose former DAG is gone and whose present one is not on yet.

    Airflow looks no longer at the runs of a DAG that is gone, so the task that watched the stream never resumes.
    `prefix` is the present one, and `dag_of` makes an id of a stream's name and a prefix.
    """

    subject: ToldSubject
    prefix: str
    dag_of: Callable[[str, str], str]

    @classmethod
    def of(cls, installation: str, cluster: str, prefix: str, dag_of: Callable[[str, str], str]) -> MovedStreams:
        return cls(ToldSubject(installation, cluster, key=_KEY), prefix, dag_of)

    def look(self, notes: ToldNotes, known: Collection[str], declared: Collection[str]) -> dict[str, str] | None:
        """Return the ids of their former DAGs; None where there never was a prefix. `known` are the streams that were
        declared before this run.

        The present prefix is kept among the notes of our own user; where none is, it was empty. A stream is forgotten
        once a task of its present DAG watches it. Raises as `ToldNotes.kept`.
        """
        before = notes.kept(self.subject)
        if not before and not self.prefix:
            return None
        moved, former = _moved_in(before), str(before.get("prefix") or "")
        if former != self.prefix:
            moved = dict.fromkeys(known, former) | moved
        moved = {
            name: was
            for name, was in moved.items()
            if name in declared and was != self.prefix and not is_watched(self.dag_of(name, self.prefix))
        }
        now = {"prefix": self.prefix, "moved": moved}
        if now != before:
            self._keep(notes, now)
        return {name: self.dag_of(name, was) for name, was in moved.items()}

    def _keep(self, notes: ToldNotes, now: Mapping[str, object]) -> None:
        try:
            notes.keep(self.subject, now)
        except KstreamError as error:
            log.warning(
                "Which streams have another DAG than before can't be kept, so the next run looks again: %s", error
            )


def _moved_in(kept: Mapping[str, object]) -> dict[str, str]:
    moved = kept.get("moved")
    return {str(name): str(was) for name, was in moved.items()} if isinstance(moved, Mapping) else {}


def variable_of(cluster: str) -> str:
    """Return the name of the Airflow Variable by which the DAG processor learns of them."""
    return f"kstream_moved_dags_{cluster}"


def show_moved(variable: str, moved: Mapping[str, str]) -> None:
    """Tell the DAG processor, which reads no note, which DAGs are to say that they must be turned on."""
    try:
        shown = Variable.get(variable, default=None)
        if moved and shown != (text := json.dumps(moved, sort_keys=True)):
            Variable.set(variable, text, description="Former DAGs of streams, until the present ones are on")
        if not moved and shown is not None:
            Variable.delete(variable)
    except Exception as error:
        log.warning("Which streams have another DAG than before can't be shown in the DAGs' names: %r", error)


def shown_moved(variable: str) -> dict[str, str]:
    """Return the former DAGs of streams that are to be turned on, nothing where that can't be read."""
    try:
        moved = json.loads(Variable.get(variable, default="{}"))
    except Exception as error:
        log.warning("Which streams have another DAG than before can't be read: %r", error)
        return {}
    if not isinstance(moved, dict):
        return {}
    # Who may edit Variables wrote it, and it becomes a part of a DAG's name.
    return {name: printable_line(str(was)[:_LONGEST_ID]) for name, was in moved.items() if is_stream_name(name)}
