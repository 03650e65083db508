"""Tell the tasks that watch streams which policies were edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_kstream import __version__
from airflow_kstream.assets import asset_uri, cluster_inlets
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.persisted_spec import read_policies
from airflow_kstream.model.policy_edit import UNEDITED, Policies, PolicyEdit, edited, mark_of
from airflow_kstream.notifications import tasks
from airflow_kstream.operators.declared_stream import declared
from airflow_kstream.operators.retries import KstreamOperator
from airflow_kstream.states.policy_edits import EDIT, MARKS, Marks
from airflow_kstream.states.recorder import is_not_named

if TYPE_CHECKING:
    from airflow.sdk import Context


class PolicyEditsOperator(KstreamOperator):
    """Store the policies of declarations that were edited, where the triggers of their deferred tasks read them.

    It reads the files on its worker, and asks no server of the cluster. Where no file changed since its last run it
    reads one row of Airflow's asset state store and writes none. It stores policies alone: an edit of anything else
    waits for the stream's task. A file that is refused keeps what was stored of it, one that was removed has nothing.

    The result (XCom) are the streams whose edited policies it stored.

    :param declarations: the files, each named after its stream.
    :param cluster_conn_id: the `kstream` connection.
    """

    def __init__(self, *, declarations: Sequence[Path], cluster_conn_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.declarations = list(declarations)
        self.cluster_conn_id = cluster_conn_id
        # The marks are kept with it, for as long as a DAG names it.
        self.inlets = [*self.inlets, *cluster_inlets(cluster_conn_id)]

    def execute(self, context: Context) -> list[str]:
        """Store what was edited, and return the streams."""
        uri = asset_uri(self.cluster_conn_id)
        before = Marks.from_json(tasks.get(uri, MARKS))
        texts = {file: self._text(file) for file in self.declarations}
        digest = _digest(texts)
        if digest == before.declarations:
            self.log.info("None of %s declarations changed", len(texts))
            return []
        found = {file.stem: self._policies(file, text) for file, text in texts.items()}
        edits = {name: policies for name, policies in found.items() if policies is not None}
        marks, stored = {name: mark for name, mark in before.streams.items() if name in found}, []
        for name in sorted(before.streams.keys() - found.keys()):
            self._withdraw(name)
        for name, policies in edits.items():
            if mark_of(policies) == marks.get(name, UNEDITED):
                continue
            if not self._store(name, policies):
                digest = ""
                continue
            marks[name] = mark_of(policies)
            stored.append(name)
        # What refuses a file may change without it, as where a notifier is installed.
        tasks.put(uri, MARKS, Marks(marks, digest if len(edits) == len(found) else "").to_json())
        self.log.info("Policies of %s streams were edited: %s", len(stored), ", ".join(stored) or "none")
        return stored

    def _text(self, file: Path) -> str | None:
        try:
            return read_text(file)
        except InvalidInput as error:
            self.log.warning("%s, so its stored policies stay as they are", error.message)
            return None

    def _policies(self, file: Path, text: str | None) -> Policies | None:
        """Return the policies that a declaration gives; None if it is refused."""
        try:
            return None if text is None else read_policies(declared(file, text))
        except Exception as error:  # As where its DAG is made, no error may cost the others theirs.
            self.log.warning("%s is refused, so its stored policies stay as they are: %s", file, error)
            return None

    def _store(self, name: str, policies: Policies) -> bool:
        """Store what a stream's declaration gives, unless it is stored; return False where there is no place yet."""
        uri = asset_uri(self.cluster_conn_id, name)
        try:
            before = PolicyEdit.from_json(tasks.get(uri, EDIT))
            if before is None or before.mark != mark_of(policies):
                tasks.put(uri, EDIT, edited(before, policies, datetime.now(UTC)).to_json())
        except Exception as error:
            if not is_not_named(error):
                raise
            self.log.info("No DAG names %s yet; the next run stores its policies", name)
            return False
        return True

    def _withdraw(self, name: str) -> None:
        """Delete what was stored of a stream without a file: another DAG may declare it now."""
        try:
            tasks.delete(asset_uri(self.cluster_conn_id, name), EDIT)
        except Exception as error:
            if not is_not_named(error):
                raise


def _digest(texts: Mapping[Path, str | None]) -> str:
    """Return text that differs when a file does, or the release that reads them."""
    content = json.dumps([__version__, *([file.stem, text] for file, text in texts.items())])
    return hashlib.sha256(content.encode()).hexdigest()
