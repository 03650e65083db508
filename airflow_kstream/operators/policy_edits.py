"""Keep the policies of declarations where the watchers of their streams read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_kstream import __version__, settings
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.declarations import (
    UNEDITED,
    DeclarationFolder,
    KeptPolicies,
    Policies,
    PolicyEdit,
    edited,
    mark_of,
    read_policies,
)
from airflow_kstream.operators.declared_stream import declared
from airflow_kstream.operators.retries import KstreamOperator
from airflow_kstream.supervise.clusters.session import open_session

if TYPE_CHECKING:
    from airflow.sdk import Context


class PolicyEditsOperator(KstreamOperator):
    """Keep the policies of declarations in the state_dir, where the triggers of their deferred tasks follow edits.

    It reads the files on its worker, and what it kept before as the connection's principal; it writes only where a
    file changed, and then once. It keeps policies alone: an edit of anything else waits for the stream's task. A file
    that is refused keeps what was kept of it, one that was removed has nothing.

    The result (XCom) are the streams whose edited policies it kept.

    Example::

        files = sorted(Path("/opt/airflow/streams").glob("*.yaml"))
        PolicyEditsOperator(task_id="policy_edits", declarations=files, cluster_conn_id="prod")

    :param declarations: the files, each named after its stream.
    :param cluster_conn_id: the `kstream` connection.
    :raises Denied: when the connection's principal is not a supervisor of the state_dir: its word would not count.
    """

    def __init__(self, *, declarations: Sequence[Path], cluster_conn_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.declarations = list(declarations)
        self.cluster_conn_id = cluster_conn_id

    def execute(self, context: Context) -> list[str]:
        """Keep what was edited, and return the streams."""
        place = DeclarationFolder(settings.text("installation"), self.cluster_conn_id)
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            before = session.declarations.policies(place)
            kept = self._now(before)
            if kept != before and not session.declarations.keep_policies(place, kept):
                self.log.info("There is no %s yet; the first start of a stream makes it", cluster.state_dir)
                return []
        stored = sorted(name for name, edit in kept.streams.items() if edit != before.streams.get(name))
        self.log.info("Policies of %s streams were edited: %s", len(stored), ", ".join(stored) or "none")
        return stored

    def _now(self, before: KeptPolicies) -> KeptPolicies:
        """Return what is to be kept; the same if no file changed."""
        texts = {file: self._text(file) for file in self.declarations}
        digest = _digest(texts)
        if digest == before.declarations:
            return before
        found = {file.stem: self._policies(file, text) for file, text in texts.items()}
        edits = {name: _edit(before.streams.get(name), policies) for name, policies in found.items()}
        # What refuses a file may change without it, as where a notifier is installed.
        whole = all(policies is not None for policies in found.values())
        return KeptPolicies({name: edit for name, edit in edits.items() if edit}, digest if whole else "")

    def _text(self, file: Path) -> str | None:
        try:
            return read_text(file)
        except InvalidInput as error:
            self.log.warning("%s, so its kept policies stay as they are", error.message)
            return None

    def _policies(self, file: Path, text: str | None) -> Policies | None:
        """Return the policies that a declaration gives; None if it is refused."""
        try:
            return None if text is None else read_policies(declared(file, text))
        except Exception as error:  # As where its DAG is made, no error may cost the others theirs.
            self.log.warning("%s is refused, so its kept policies stay as they are: %s", file, error)
            return None


def _edit(before: PolicyEdit | None, policies: Policies | None) -> PolicyEdit | None:
    """Return what is kept of a declaration that gives these policies; None: nothing, as of one that never gave any."""
    if policies is None or mark_of(policies) == (before.mark if before else UNEDITED):
        return before
    return edited(before, policies, datetime.now(UTC))


def _digest(texts: Mapping[Path, str | None]) -> str:
    """Return text that differs when a file does, or the release that reads them."""
    content = json.dumps([__version__, *([file.stem, text] for file, text in texts.items())])
    return hashlib.sha256(content.encode()).hexdigest()
