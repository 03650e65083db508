"""What the demonstration stands on: the cluster, Airflow with its connection and declarations, the shipper."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.demo import plan as demo_plan
from airflow_kstream.demo.airflow_api import Connection
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings
from airflow_kstream.demo.keeper import Happening, Keeper, KeeperEvent
from airflow_kstream.demo.narrator import Narrator
from airflow_kstream.demo.plan import CONNECTION, STATE_DIR, TOPIC, DemoPlan
from airflow_kstream.demo.process_tree import Child
from airflow_kstream.model.errors import StandError
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.stand import Stand, StandPlan

DAGS = Path(__file__).parents[2] / "dags"


@dataclass(frozen=True)
class Ground:
    """Everything that runs, and where to find it."""

    root: Path
    stand: Stand
    keeper: Keeper
    home: AirflowHome
    streams: tuple[StreamSpec, StreamSpec]
    control: StreamSpec

    def connection(self) -> dict[str, Any]:
        return _connection(self.stand)


def lay_ground(plan: DemoPlan, narrator: Narrator, stack: ExitStack) -> Ground:
    """Start it all; `stack` ends it all, whatever happens."""
    plan.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    stand = _stand(plan, narrator, stack)
    os.environ["KRB5_CONFIG"] = str(stand.krb5_conf)
    kafka_keytab = plan.root / "kafka-client.keytab"
    shutil.copy(stand.keytab("streamer"), kafka_keytab)
    streams = demo_plan.streams(stand, kafka_keytab)
    _write_declarations(plan.root, stand, streams)
    home = _airflow_home(plan, stand)
    keeper = Keeper(lambda event: _tell(narrator, event))
    stack.callback(keeper.stop)
    ground = Ground(plan.root, stand, keeper, home, streams, demo_plan.naive(stand, kafka_keytab))
    _start_airflow(ground, narrator)
    return ground


class Shipper:
    """The shipper as a process; a keeper of its own, for it is told to end while all else goes on."""

    def __init__(self, ground: Ground, stack: ExitStack) -> None:
        self._log = ground.root / "shipper.log"
        self._keeper = Keeper()
        stack.callback(self._keeper.stop)
        settings = ground.root / "shipper.json"
        settings.write_text(json.dumps(_shipping(ground.stand)))
        argv = (sys.executable, "-m", "airflow_kstream.clients.shipper", "--settings", str(settings))
        env = {"PATH": os.environ["PATH"], "KRB5_CONFIG": str(ground.stand.krb5_conf), "PYTHONUNBUFFERED": "1"}
        self._keeper.start(Child("shipper", argv, self._log, env, grace=30))

    def finish(self) -> Mapping[str, int]:
        """Let it ship what is complete, end it, and return up to which byte each file was shipped."""
        self._keeper.stop()
        last = self._log.read_text().strip().splitlines()[-1]
        try:
            ends: Mapping[str, int] = json.loads(last)
        except ValueError as error:
            raise StandError(f"its last word was {last!r}", tried="stop the shipper") from error
        return ends


def _stand(plan: DemoPlan, narrator: Narrator, stack: ExitStack) -> Stand:
    narrator.say("starting a kerberized cluster: KDC, HDFS with two NameNodes, YARN, Kafka")
    stand_plan = StandPlan(plan.root / "stand", renew_interval=plan.renew_interval, max_lifetime=plan.max_lifetime)
    stack.callback(_down, stand_plan.root)
    stand = Stand.up(stand_plan)
    narrator.say(f"the cluster serves; delegation tokens live {plan.max_lifetime.total_seconds():.0f} s at most")
    return stand


def _down(root: Path) -> None:
    if (root / "stand.json").exists():
        Stand.at(root).down()


def _connection(stand: Stand) -> dict[str, Any]:
    return {
        "principal": stand.principal("streamer"),
        "keytab_path": str(stand.keytab("streamer")),
        "hadoop_conf_dir": str(stand.conf_dir),
        "krb5_conf": str(stand.krb5_conf),
        "state_dir": STATE_DIR,
        "spark_conf": stand.spark_conf(),
    }


def _shipping(stand: Stand) -> dict[str, Any]:
    return {
        "bootstrap_servers": stand.bootstrap_servers,
        "topic": TOPIC,
        "files": {name: str(path) for name, path in stand.event_logs().items()},
        "principal": stand.principal("streamer"),
        "keytab": str(stand.keytab("streamer")),
    }


def _write_declarations(root: Path, stand: Stand, streams: tuple[StreamSpec, ...]) -> None:
    (root / "cluster.yaml").write_text(yaml.safe_dump(_connection(stand)))
    folder = root / "streams" / CONNECTION
    folder.mkdir(parents=True, exist_ok=True)
    for spec in streams:
        (folder / f"{spec.name}.yaml").write_text(yaml.safe_dump(spec.to_mapping()))


def _airflow_home(plan: DemoPlan, stand: Stand) -> AirflowHome:
    env = {
        "KRB5_CONFIG": str(stand.krb5_conf),
        "KSTREAM_STREAMS": str(plan.root / "streams"),
        "KSTREAM_RETRY_DELAY": "3s",
    }
    # The stand's Java options are long; the rendered command line is to be seen whole.
    overrides = {"core": {"max_templated_field_length": "16384"}}
    return AirflowHome(plan.root / "airflow", DAGS, env, crash=CrashSettings.brisk(), overrides=overrides)


def _start_airflow(ground: Ground, narrator: Narrator) -> None:
    narrator.say("starting Airflow: API server, scheduler, triggerer, DAG processor")
    ground.home.prepare()
    for component in ground.home.components():
        ground.keeper.start(component)
    ground.home.wait_until_healthy(ground.keeper)
    api = ground.home.api()
    api.put_connection(Connection(CONNECTION, "kstream", "The demonstration's cluster", extra=ground.connection()))
    wanted = {f"stream-{spec.name}" for spec in ground.streams}
    Retrying(
        retry=retry_if_result(lambda found: not wanted <= set(found)), stop=stop_after_delay(120), wait=wait_fixed(0.5)
    )(api.dag_ids)
    narrator.say(f"Airflow serves at {ground.home.url}; user admin, password {ground.home.login.password}")


def _tell(narrator: Narrator, event: KeeperEvent) -> None:
    if event.happening in {Happening.DIED, Happening.RESPAWNED, Happening.GAVE_UP}:
        narrator.say(f"{event.child} {event.happening} {event.detail}", "keeper")


def end_on_signals() -> None:
    """SIGTERM ends the demonstration as Ctrl-C does: orderly, and whatever is under way."""

    def interrupted(number: int, _: object) -> None:
        # A second signal must not cut the tidying up short.
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupted)
