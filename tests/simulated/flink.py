"""Flink's engine on simulated servers: its jobs complete checkpoints and savepoints when a test says so."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.contract import started_marker
from airflow_kstream.model.streams.flink_job import flink_job_id
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.installations import FlinkInstallation
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import RestartPolicy, StopPolicy, WatchPolicy
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.flink.flink_submission import (
    checkpoints_folder,
    flink_submission,
    savepoints_folder,
)
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from tests.simulated.life import Life
from tests.simulated.servers import SimHdfs, SimYarn, session_of

FLINK_SPEC = FlinkStreamSpec(
    name="orders",
    credentials=TicketCredentials(),
    application="hdfs:///apps/orders.jar",
    checkpoints=("/flink/orders",),
    conf={"execution.checkpointing.interval": "30s"},
    restart=RestartPolicy(jitter_ratio=0),
    stop=StopPolicy(marker_grace=timedelta(seconds=20)),
    watch=WatchPolicy(look_every=timedelta(seconds=10)),
)
FLINK = FlinkInstallation("/opt/flink", (1, 20, 3), {}, "rm/_HOST@EXAMPLE.COM", "/opt/kstream-flink.jar")
_TAGS, _RESUME = "yarn.tags", "execution.state-recovery.path"
# Of Checkpoints.throwNonRestoredStateException, alike in 1.20.3 and 2.1.1.
UNMAPPED = (
    "java.lang.IllegalStateException: Failed to rollback to checkpoint/savepoint hdfs://prod/flink/orders/0b1c/chk-3. "
    "Cannot map checkpoint/savepoint state for operator 6d2677a0ecc3fd8df0b72ec675edf8f4 to the new program, because "
    "the operator is not available in the new program. If you want to allow to skip this, you can set the "
    "--allowNonRestoredState option on the CLI."
)


def metadata(number: int) -> bytes:
    """Return the beginning of the file that makes a checkpoint complete."""
    return struct.pack(">IiQ", 0x4960672D, 4, number) + b"state"


@dataclass
class SimFlink(FlinkEngine):
    """An engine whose client starts an application at once. `at_submit` happens before, and can raise.

    The next ends of its client are `ends`; one that is withdrawn leaves a killed application.
    """

    hdfs: SimHdfs
    yarn: SimYarn
    ends: list[SubmitOutcome] = field(default_factory=list)
    at_submit: Callable[[], object] = lambda: None
    resumed: list[str] = field(default_factory=list)

    def submission(self, order: SubmissionOrder) -> Submission:
        return flink_submission(order, FLINK)

    def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
        return None

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        self.at_submit()
        settings = {key: str(setting.value) for key, setting in submission.settings.items()}
        self.resumed.append(plain_path(settings.get(_RESUME, "")))
        assert not self.resumed[-1] or f"{self.resumed[-1]}/_metadata" in self.hdfs.files
        app = self.yarn.start(frozenset(settings[_TAGS].split(",")))
        outcome = self.ends.pop(0) if self.ends else SubmitOutcome(0, "")
        if outcome.withdrawn:
            self.yarn.end(app.id, ApplicationState.KILLED)
        return outcome


class FlinkLife:
    """A life of a stream of Flink's on a `Life`'s servers, whose files of Flink's a test makes."""

    def __init__(self, life: Life, spec: FlinkStreamSpec = FLINK_SPEC) -> None:
        self.life, self.spec = life, spec
        self.hdfs, self.yarn = life.hdfs, life.yarn
        self.hdfs.write(spec.application, "PK")
        self.hdfs.make_folder(spec.checkpoints[0])
        self.engine = SimFlink(life.hdfs, life.yarn)
        self.reopen(spec)

    def reopen(self, spec: FlinkStreamSpec) -> None:
        """Declare it otherwise from now on."""
        self.spec = spec
        self.life.engine = self.engine  # type: ignore[assignment]
        self.life.run = StreamRun(session_of(self.hdfs, self.yarn), spec, self.engine)

    @property
    def claim(self) -> Claim:
        claim = observe(self.life.run).claim
        assert claim is not None
        return claim

    @property
    def job(self) -> str:
        return flink_job_id(self.life.run.id, self.claim.generation, self.claim.nonce)

    @property
    def application(self) -> Application:
        return max(self.yarn.apps.values(), key=lambda app: app.order)

    @property
    def folder(self) -> str:
        return checkpoints_folder(self.spec, self.job)

    def complete(self, *numbers: int) -> None:
        """Complete checkpoints of the newest generation, if its folder lets it."""
        for number in numbers:
            if self.hdfs.modes.get(self.folder) == "555":
                raise Denied("Permission denied", tried="mkdirs")
            self.hdfs.write(f"{self.folder}/chk-{number}/_metadata", metadata(number))

    def save(self, number: int, job: str = "") -> str:
        """Complete a savepoint of a job, by default the newest generation's, and return its path."""
        path = f"{savepoints_folder(self.spec, job or self.job)}/savepoint-{number}"
        self.hdfs.write(f"{path}/_metadata", metadata(number))
        return path

    def obeys_its_marker(self, number: int) -> None:
        """Let the jar in the newest generation obey its stop marker: with this savepoint, as soon as YARN is asked."""
        self.hdfs.write(f"{self.life.run.id.folder}/{started_marker(self.claim.generation)}", "")
        generation, obeys, ask = self.claim.generation, self.application.id, self.yarn.application

        def asked(application_id: str) -> Application:
            if application_id == obeys and f"{self.life.run.id.folder}/stop-{generation:06d}" in self.hdfs.files:
                self.yarn.application = ask  # type: ignore[method-assign]
                self.save(number)
                for name in [name for name in self.hdfs.files if name.startswith(f"{self.folder}/chk-")]:
                    del self.hdfs.files[name]
                return self.yarn.end(obeys)
            return ask(application_id)

        self.yarn.application = asked  # type: ignore[method-assign]

    def die(self, state: ApplicationState = ApplicationState.FAILED, diagnostics: str = "") -> None:
        self.yarn.end(self.application.id, state, diagnostics)

    def changed(self, **fields: object) -> FlinkStreamSpec:
        return replace(self.spec, **fields)  # type: ignore[arg-type]
