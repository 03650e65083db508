"""Wait for files that are stuck open for write, or until none is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk.configuration import conf

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.leases.lease import LeaseRules
from airflow_kstream.model.leases.requests import OpenFileCondition, fields_with
from airflow_kstream.sensors.awaiting import AwaitingSensor
from airflow_kstream.supervise.leases.findings import condition_report, is_met
from airflow_kstream.supervise.leases.session import open_lease_session
from airflow_kstream.supervise.leases.survey import Surveyor
from airflow_kstream.triggers.leases import OpenFilesTrigger


class HdfsOpenFileSensor(AwaitingSensor):
    """A wait until files below a path are stuck, or (`until="none"`) until none is open: then readers miss no rows.

    A file counts as stuck when it was measured unchanged for `quiet`, or when it is known to be past recovery. The
    sensor keeps its measurements in `state_dir`, so that a later run continues from there. The result (XCom) has the
    counts and the first 20 paths.

    What it does not do: it touches no lease, and therefore doesn't know whether a holder lives. The only way to learn
    that from the NameNode is a request that begins the recovery of a dead holder's file; HdfsLeaseRecoverOperator
    sends it. An unreachable server or a path that does not exist yet does not end the wait; `timeout` does.

    Example::

        HdfsOpenFileSensor(
            task_id="closed", cluster_conn_id="prod", path="/data/landing", condition={"until": "none"}, deferrable=True
        )

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param path: an absolute folder or file.
    :param condition: what to wait for, if the defaults don't fit: the other fields of `OpenFileCondition`, by name.
    :param deferrable: wait in the triggerer and hold no worker slot.
    :raises AirflowFailException: when neither waiting nor retrying can help: a wrong field or a missing right.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "path", "condition")
    template_fields_renderers = {"condition": "yaml"}  # noqa: RUF012  Airflow's own attribute

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        path: str,
        condition: Mapping[str, Any] | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, deferrable=deferrable, **kwargs)
        self.path = path
        self.condition = condition

    def poll(self) -> tuple[bool, dict[str, Any]]:
        awaited = self._awaited()
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_lease_session(cluster, cluster.watcher) as session,
        ):
            survey = Surveyor(session, awaited.search(awaited.min_age), LeaseRules(), self.log.info).scan()
        report = condition_report(awaited, survey)
        self.log.info("%d files are open below %s, %d of them stuck", report["open"], self.path, report["stuck"])
        return is_met(awaited, survey), report

    def trigger(self) -> OpenFilesTrigger:
        return OpenFilesTrigger(self.cluster_conn_id, self._awaited().to_mapping(), self.poke_interval)

    def _awaited(self) -> OpenFileCondition:
        return OpenFileCondition.from_mapping(fields_with({"path": self.path}, self.condition, "condition"))
