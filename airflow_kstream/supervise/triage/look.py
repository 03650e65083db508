"""One look at logs, as a person or a task requests it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_kstream.clients.local.log_files import files_below
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.model.logs.signature import Catalogue
from airflow_kstream.model.streams.kept_generation import NOTHING_KEPT, KeptGeneration
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.triage.application import triage_application
from airflow_kstream.supervise.triage.catalogue import catalogue_with
from airflow_kstream.supervise.triage.scan import triage_path
from airflow_kstream.supervise.triage.spark import SparkRun, application_logs, triage_with_spark


@dataclass(frozen=True)
class TriageLook:
    """The catalogue, the zone of logs that don't say theirs, and how Spark runs; without it this process scans."""

    catalogue: Catalogue
    zone: tzinfo | None = None
    spark: SparkRun | None = None

    @classmethod
    def of(
        cls, signatures: Sequence[str | Path] = (), time_zone: str | None = None, spark: str | None = None
    ) -> TriageLook:
        """Read files of signatures. Raises InvalidInput: when one is wrong, or the zone has no such name."""
        run = SparkRun(spark) if spark else None
        return cls(catalogue_with(Path(file) for file in signatures), zone_of(time_zone), run)

    def of_path(self, target: str) -> Diagnosis:
        """Judge the logs in a file or a folder of this host. Raises InvalidInput: when there is none to be read."""
        path = Path(target)
        if self.spark is None:
            return triage_path(path, self.catalogue, self.zone)
        # Refuse what is not there before Spark takes seconds to start.
        files_below(path)
        return triage_with_spark([path.resolve().as_uri()], self.catalogue, self.spark, zone=self.zone)

    def of_application(
        self, session: ClusterSession, application_id: str, kept: KeptGeneration = NOTHING_KEPT
    ) -> Diagnosis:
        """Judge an application of the cluster; with Spark by its aggregated logs alone. Raises as both do."""
        if self.spark is None:
            return triage_application(session, application_id, self.catalogue, self.zone, kept=kept)
        logs = application_logs(session, application_id)
        return triage_with_spark(logs, self.catalogue, self.spark, session, self.zone)


def zone_of(name: str | None) -> tzinfo | None:
    """Return the zone of this name. Raises InvalidInput: when there is none."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"the time zone is {name!r}; allowed is a name such as Europe/Berlin") from None
