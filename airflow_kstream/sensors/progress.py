"""Wait until a stream has committed everything that had arrived by a moment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import XComArg
from airflow.sdk.configuration import conf

from airflow_kstream import settings
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.links import PageLink
from airflow_kstream.model.declared import written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.streams.declarations import policies_of
from airflow_kstream.model.streams.progress import ProgressCondition
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.sensors.awaiting import AwaitingSensor
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.look.progress import ProgressWatch
from airflow_kstream.triggers.progress import StreamProgressTrigger


class StreamProgressSensor(AwaitingSensor):
    """A wait until a stream has committed everything that had arrived by a moment.

    It reads the checkpoint itself; the job knows nothing of it. The result (XCom) and the log say what proves it, for
    each of the stream's checkpoints, and `proof` is the weakest of them:

    * `offsets`: where the stream declares `kafka`, the committed offsets have reached those that each partition had at
      the moment, as the timestamps of its records tell. A stream without new records is done at once.
    * `batch`: else, a batch is committed that was planned a minute or more after the moment.
    * `quiet`: no batch has come for `quiet_after` since the moment, in a stream that runs and is HEALTHY or IDLE.

    A minute after the moment is the earliest, because clocks differ. A stream that is held or stopped, or whose
    progress is UNKNOWN, never counts, and neither does a checkpoint in which others than the stream's user wrote. An
    unreachable server, or a stream that does not exist yet, does not end the wait; `timeout` does.

    What it does not do: it knows nothing of topics that no committed batch names, nor of records that a query skipped
    by its starting offsets. It takes the timestamp of a record for the time of its arrival, give or take a minute, so
    it is not for topics whose producers set event times (`message.timestamp.type=CreateTime`): with times of the past
    it waits for records that came after the moment, and with times of the future it may end too early. It does not see
    a limit on what a batch reads that only the job's code sets, or that a source has by default, as Delta's thousand
    files: with one, a later batch can lack what had arrived before.

    Example::

        StreamProgressSensor(
            task_id="orders_are_in", cluster_conn_id="prod", stream="orders", moment="{{ data_interval_end }}",
            deferrable=True,
        )

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param stream: a stream's name, or its StreamSpec.
    :param moment: a time with its zone: a datetime, or ISO 8601 text.
    :param quiet_after: a duration such as `30m`, which must exceed the interval of the stream's trigger: else each
        pause between two batches would prove it. Without it, quiet proves nothing.
    :param deferrable: wait in the triggerer and hold no worker slot.
    :raises InvalidInput: where the DAG is parsed, when a field is wrong, or when the stream's declaration (StreamSpec
        or one in `[kstream] streams_folder`) limits what a batch reads, as `maxOffsetsPerTrigger`, without `kafka`, or
        is of `engine: flink`, whose checkpoints don't tell what a job has read.
    :raises AirflowFailException: when neither waiting nor retrying can help.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "stream", "moment", "quiet_after")
    operator_extra_links = (PageLink(),)

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        stream: str | StreamSpec | XComArg,
        moment: str | datetime | XComArg,
        quiet_after: str | timedelta | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, deferrable=deferrable, **kwargs)
        declared = stream.checked() if isinstance(stream, StreamSpec) else _in_folder(cluster_conn_id, stream)
        self.stream = stream.name if isinstance(stream, StreamSpec) else stream
        self.policies = written(policies_of(stream)) if isinstance(stream, StreamSpec) else None
        self.moment = moment
        self.quiet_after = quiet_after
        if declared:
            _require_provable(declared)
        if not any(_comes_later(value) for value in (self.stream, moment, quiet_after)):
            self._awaited()

    @property
    def page(self) -> dict[str, str]:
        """Return what names the page of its stream."""
        return {"cluster": self.cluster_conn_id, "stream": str(self.stream)}

    def poll(self) -> tuple[bool, dict[str, Any]]:
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            answer = ProgressWatch(session, installation=settings.text("installation")).answer(self._awaited())
        self.log.info("%s", answer.words)
        return bool(answer.proof), answer.report()

    def trigger(self) -> StreamProgressTrigger:
        return StreamProgressTrigger(self.cluster_conn_id, self._awaited().to_mapping(), self.poke_interval)

    def resume(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        report = super().resume(context, event)
        self.log.info("%s", report["words"])
        return report

    def _awaited(self) -> ProgressCondition:
        return ProgressCondition.from_mapping(
            {
                "stream": self.stream,
                "moment": self.moment,
                "quiet_after": self.quiet_after or None,
                "policies": self.policies,
            }
        )


def _comes_later(value: object) -> bool:
    """Return whether only the rendered task knows the value."""
    return isinstance(value, XComArg) or (isinstance(value, str) and "{" in value)


def _require_provable(declared: StreamSpec) -> None:
    if not declared.checkpoints:
        raise InvalidInput(f"{declared.name} declares no checkpoint, so that nothing shows what it has committed")
    if why := engine_of(declared).limited(declared):
        raise InvalidInput(why)


def _in_folder(cluster_conn_id: str, stream: object) -> StreamSpec | None:
    """Return the declaration of a stream in `[kstream] streams_folder`, if there is one that can be read: its own DAG
    tells what is wrong with it."""
    if not isinstance(stream, str) or not is_stream_name(stream) or "/" in cluster_conn_id:
        return None
    with suppress(InvalidInput, OSError):
        if folder := settings.folder("streams_folder"):
            return StreamSpec.from_yaml(read_text(folder / cluster_conn_id / f"{stream}.yaml"))
    return None
