"""A whole Airflow on loopback, with a connection to the minicluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from airflow_kstream.demo.airflow_api import Connection
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings
from airflow_kstream.demo.supervisor import ProcessSupervisor
from airflow_kstream.minicluster import Minicluster
from tests.cluster.streams import fields
from tests.secrets.answers import write_answers

CONNECTION = "minicluster"
Settings = Mapping[str, Mapping[str, str]]


@contextmanager
def live_airflow(
    minicluster: Minicluster, root: Path, dags: Path, env: Mapping[str, str], overrides: Settings | None = None
) -> Iterator[AirflowHome]:
    """Run an Airflow that learns the realm from the connection alone; keep its API's answers for the secrets search."""
    home = AirflowHome(root / "home", dags, dict(env), crash=CrashSettings.brisk(), overrides=overrides or {})
    home.prepare()
    with ProcessSupervisor() as supervisor:
        for component in home.components():
            supervisor.start(component)
        home.wait_until_healthy(supervisor, timeout=400)
        extra = {name: value for name, value in dataclasses.asdict(fields(minicluster)).items() if value}
        home.api().put_connection(Connection(CONNECTION, "kstream", extra=extra))
        yield home
        write_answers(home.api(), root / "answers")
