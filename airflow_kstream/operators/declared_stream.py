"""What an operator knows of its stream: its declaration, rendered or not; if that is refused, what was submitted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from airflow.sdk import Asset, XComArg
from airflow.sdk.definitions._internal.mixins import ResolveMixin
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.assets import cluster_inlets, stream_asset
from airflow_kstream.model.airflow_options import is_template, require_no_secret, require_no_templates
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.declared import written
from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.secrets import require_no_literals_in
from airflow_kstream.model.streams.declarations import Policies, PolicyEdit, mark_of, policies_of, read_policies
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import EngineName, StreamSpec, TicketCredentials, require_named_after
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.notifications.notifier import require_usable
from airflow_kstream.operators.retries import UnendingOperator
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.look.blocked import require_allowed
from airflow_kstream.supervise.streams.orders.desired import KnownSpec, claimed_spec, newest_claim_of


def declared(declaration: Path, text: str) -> dict[str, Any]:
    """Return the fields of a file that declares a stream. Raises InvalidInput: when any of it is wrong, or a template.

    The operator's own templates are for authors of DAGs, who can run code on a worker anyway.
    """
    fields = read_mapping(text)
    require_no_templates(fields)
    spec = StreamSpec.from_mapping(fields)
    require_named_after(spec.name, declaration.stem)
    require_usable(spec.notify, "notify.")
    return fields


class DeclaredStreamOperator(UnendingOperator):
    """The base of an operator for one stream: what is to run.

    `engines` are those whose declarations it takes; `implied` are fields that a mapping has unless it sets them.

    Example::

        class NamesItsPageOperator(DeclaredStreamOperator):
            def execute(self, context):
                return self.page
    """

    engines: ClassVar[tuple[EngineName, ...]] = tuple(EngineName)
    implied: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        *,
        stream: StreamSpec | Mapping[str, Any] | XComArg | str,
        cluster_conn_id: str,
        follows_edits: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream, self.notify = apart(self._mapping_of(stream))
        # Not only on the worker: Airflow stores parsed and rendered fields in its database.
        require_no_literals_in(self.stream)
        # A folder's files are checked where their DAGs are made, and a spec above.
        self.refusal = "" if follows_edits or isinstance(stream, StreamSpec) else self._refused()
        if self.max_active_tis_per_dag is None and name_in(self.stream):
            # Without `max_active_runs=1`, each run would have another task that watches the same stream.
            self.max_active_tis_per_dag = 1
        # What pages show is kept with these assets, for as long as a DAG names them.
        self.inlets = [*self.inlets, *cluster_inlets(cluster_conn_id)]
        self.outlets = [*self.outlets, *assets_of(self.stream, cluster_conn_id)]
        self.cluster_conn_id = cluster_conn_id
        self.follows_edits = follows_edits
        self._edit: PolicyEdit | None = None

    def _refused(self) -> str:
        """Check a mapping, tell the DAG's author what is refused, and return that."""
        named = self.stream.get("engine", EngineName.SPARK) if isinstance(self.stream, Mapping) else None
        if why := refusal_of(self.stream, self.notify) or self._not_taken(named):
            # Nothing else of it is kept: where a field has the wrong form, a secret in it is not recognized.
            self.stream = {"name": name_in(self.stream)}
            self.tell_author(f"the declaration is refused, so its stream is kept as it was last submitted: {why}")
        return why

    def _mapping_of(self, stream: StreamSpec | Mapping[str, Any] | XComArg | str) -> Mapping[str, Any] | XComArg | str:
        """Return the declaration as an author may have written it.

        Raises InvalidInput: when a spec is wrong, or of an engine that this operator doesn't take.
        """
        if isinstance(stream, StreamSpec):
            return self._require_taken(stream.checked()).to_mapping()
        return {**self.implied, **stream} if isinstance(stream, Mapping) else stream

    def _require_taken(self, spec: StreamSpec) -> StreamSpec:
        if why := self._not_taken(spec.engine):
            raise InvalidInput(why)
        return spec

    def _not_taken(self, engine: object) -> str:
        """Return why a declaration with this engine's name is refused; empty if it isn't, or names no engine."""
        if engine in self.engines or engine not in set(EngineName):
            return ""
        return f"engine is {engine}; allowed is {', '.join(self.engines)} in {type(self).__name__}"

    @property
    def page(self) -> dict[str, str]:
        """Return what names the page of its stream; nothing where the declaration is wrong."""
        with suppress(KstreamError):
            return {"cluster": self.cluster_conn_id, "stream": self._spec().name}
        return {}

    def _policies(self, spec: StreamSpec) -> dict[str, Any] | None:
        """Return the policies that hold for the watcher instead of the claim's, as plain data."""
        given = self._given(spec)
        return None if given is None else {name: written(policy) for name, policy in given.items()}

    def _given(self, spec: StreamSpec) -> Policies | None:
        """Return the policies that this task knows by itself."""
        return None if self.refusal else policies_of(spec)

    def _edited(self, spec: StreamSpec) -> StreamSpec:
        """Return the spec with the policies that the watcher judged by, where this task's declaration is older."""
        given = self._given(spec)
        if self._edit is None or not self._edit.replaces(None if given is None else mark_of(given)):
            return spec
        return replace(spec, **read_policies(self._edit.policies))

    def _spec(self) -> StreamSpec:
        if self.refusal:
            if name := name_in(self.stream):
                # All that is known of it without a look at the cluster.
                return StreamSpec(name, TicketCredentials(), application="", checkpoints=())
            raise InvalidInput(self.refusal)
        if isinstance(self.stream, str):
            return self._edited(self._require_taken(StreamSpec.from_yaml(self.stream)))
        if isinstance(self.stream, Mapping):
            return self._edited(self._require_taken(StreamSpec.from_mapping({**self.stream, **self.notify})))
        raise InvalidInput(f"stream is {type(self.stream).__name__}; allowed is a mapping of fields, or text in YAML")

    def _known_on(self, cluster: Cluster) -> KnownSpec:
        """Return what is to run on this cluster: the declaration or, if it is refused, what was submitted."""
        spec = self._spec()
        if self.refusal:
            try:
                return self._claimed(cluster, spec.name)
            except (NotFound, InvalidInput) as error:
                raise AirflowFailException(f"{self.refusal}. And there is nothing to keep: {error}") from error
        try:
            require_submittable(spec, cluster)
            self._require_allowed(spec, cluster)
        except InvalidInput as refusal:
            try:
                claimed = self._claimed(cluster, spec.name)
            except (NotFound, InvalidInput):
                raise refusal from None
            self.log.error("The declaration is refused; %s is kept as it was last submitted. %s", spec.name, refusal)
            return claimed
        return KnownSpec(spec, submittable=True)

    def _require_allowed(self, spec: StreamSpec, cluster: Cluster) -> None:
        """Check that the connection allows what the declaration uses. HDFS is asked only about what it does not."""
        try:
            require_allowed(spec, cluster)
        except InvalidInput:
            with open_session(cluster, cluster.watcher) as session:
                require_allowed(spec, cluster, newest_claim_of(session, StreamId(spec.name, cluster.state_dir)))

    def _claimed(self, cluster: Cluster, name: str) -> KnownSpec:
        """Return what the newest claim tells. Raises as `claimed_spec`."""
        with open_session(cluster, cluster.watcher) as session:
            known = claimed_spec(session, StreamId(name, cluster.state_dir))
        if not known.submittable:
            self.log.error("%s is watched, and nothing of it is submitted: %s", name, known.doubt)
        return replace(known, spec=self._edited(known.spec))


def apart(
    stream: Mapping[str, Any] | XComArg | str,
) -> tuple[Mapping[str, Any] | XComArg | str, Mapping[str, Any]]:
    """Return the declaration without its notifier, and that: its templates are rendered with an event, not here.

    Raises InvalidInput: when an argument of the notifier is a secret in clear.
    """
    if not isinstance(stream, Mapping) or "notify" not in stream:
        return stream, {}
    notify = stream["notify"]
    require_no_secret(_mapping(_mapping(notify).get("kwargs")), "notify.")
    return {name: value for name, value in stream.items() if name != "notify"}, {"notify": notify}


def assets_of(stream: object, cluster_conn_id: str) -> list[Asset]:
    """Return the asset of the stream; none where only the rendered task knows it."""
    if "{{" in cluster_conn_id:
        return []
    return [stream_asset(cluster_conn_id, name)] if (name := name_in(stream)) else []


def name_in(stream: object) -> str:
    """Return the name that a mapping declares; empty if it is none that a stream can have, or not known yet."""
    name = stream.get("name") if isinstance(stream, Mapping) else None
    return name if isinstance(name, str) and is_stream_name(name) else ""


def refusal_of(stream: object, notify: Mapping[str, Any]) -> str:
    """Return why a mapping is refused where its DAG is parsed; empty if it isn't, or only the rendered task knows."""
    if not isinstance(stream, Mapping) or not _is_plain(stream):
        return ""
    try:
        StreamSpec.from_mapping({**stream, **notify})
    except InvalidInput as error:
        return error.message
    return ""


def _is_plain(value: object) -> bool:
    """Return whether nothing of a value is rendered before its task runs, such as a template or an XCom."""
    if isinstance(value, Mapping):
        return all(_is_plain(item) for each in value.items() for item in each)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return not is_template(value)
    return not isinstance(value, ResolveMixin)


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}
