"""The control: the same job, submitted by its engine's plain client and unsupervised."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from airflow_kstream.demo import promises
from airflow_kstream.demo.config import STREAMER
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.environment import CONTROL_CONF, Environment
from airflow_kstream.demo.flink_job import MAIN_CLASS
from airflow_kstream.demo.promises import Promise
from airflow_kstream.minicluster.flink import TASK_MANAGER, jobmanager_log, lose_taskmanager, processes
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import MiniclusterError
from airflow_kstream.model.streams.stream import EngineName
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.spark.spark_engine import DRIVER_HELPER

_TAG = "demo-control"


@dataclass
class Control:
    """The control of one run.

    Spark's has no keytab, and YARN's default of two attempts: from a PySpark driver's death YARN learns only the exit
    code, but the second attempt can't be localised with a dead token and puts InvalidToken into the diagnostics.
    Flink's has a keytab, and runs on: what it can't do any longer is to replace a TaskManager.
    """

    environment: Environment
    console: DemoConsole

    def submit(self) -> None:
        spec, log = self.environment.control, self.environment.root / "control.log"
        conf_dir = self.environment.root / CONTROL_CONF
        environment = self.environment.minicluster.client_env(STREAMER) | {"FLINK_CONF_DIR": str(conf_dir)}
        client, argv = ("flink", self._flink(conf_dir)) if self._is_flink else ("spark-submit", self._spark_submit())
        with log.open("wb") as output:
            done = subprocess.run(argv, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise MiniclusterError(
                f"it ended with {done.returncode}; its output is in {log}", tried="submit the control"
            )
        self.console.say(f"submitted with plain {client}, and left to itself", spec.name)

    def seen(self, session: ClusterSession) -> Application:
        return max(session.yarn.applications(_TAG), key=lambda app: app.id)

    def lose_taskmanager(self, session: ClusterSession) -> None:
        """Kill the TaskManager of a Flink job, so that the next one begins on a node without its files."""
        if self._is_flink:
            lose_taskmanager(self.environment.minicluster.root, self.seen(session).id)
            self.console.say("SIGKILL to its TaskManager, on a node without its files", self.environment.control.name)

    def promise(self, session: ClusterSession) -> Promise:
        app, minicluster = self.seen(session), self.environment.minicluster
        if not self._is_flink:
            return promises.died_of_its_token(app)
        workers = processes(minicluster.root, app.id, TASK_MANAGER)
        return promises.never_worked_again(app, len(workers), jobmanager_log(minicluster.root, app.id))

    @property
    def _is_flink(self) -> bool:
        return self.environment.control.engine is EngineName.FLINK

    def _spark_submit(self) -> list[str]:
        spec = self.environment.control
        conf = {**self.environment.minicluster.spark_conf(), **spec.plain_conf, "spark.yarn.tags": _TAG}
        conf["spark.yarn.submit.waitAppCompletion"] = "false"
        argv = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "--name", spec.name]
        argv += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        argv += ["--jars", ",".join(spec.deploy.jars), "--files", ",".join(spec.deploy.files)]
        return [*argv, "--py-files", DRIVER_HELPER, spec.application, *spec.arguments]

    def _flink(self, conf_dir: Path) -> list[str]:
        minicluster, spec = self.environment.minicluster, self.environment.control
        conf = {
            "yarn.application.name": spec.name,
            "yarn.tags": _TAG,
            "yarn.ship-files": ";".join(spec.deploy.files),
            "security.kerberos.login.keytab": str(minicluster.keytab(STREAMER)),
            "security.kerberos.login.principal": minicluster.principal(STREAMER),
            "execution.checkpointing.dir": minicluster.default_fs + spec.checkpoints[0],
            **spec.plain_conf,
        }
        return minicluster.flink_client(conf_dir, conf, ("-c", MAIN_CLASS, spec.application, *spec.arguments))
