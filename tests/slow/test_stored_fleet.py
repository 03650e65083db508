"""The states of three hundred streams outlive the triggerer that wrote them, on a real Airflow.

The cluster is simulated inside of the triggerer: three hundred applications don't fit on two cores, and what is tested
is the way of their states into Airflow's database.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings
from airflow_kstream.demo.supervisor import ProcessSupervisor
from airflow_kstream.states.reading import StoredState, stored_states
from tests.live.simulated_fleet import CONNECTION, NAMES
from tests.live.streams import await_that
from tests.simulated.fleet import FIELDS

pytestmark = pytest.mark.lives

REPOSITORY = Path(__file__).parents[2]
DAG = """
from airflow.sdk import DAG, Asset, AssetAny, AssetWatcher
from airflow_kstream.assets import asset_uri
from tests.live.simulated_fleet import CONNECTION, NAMES, Watching

def asset(name):
    return Asset(asset_uri(CONNECTION, name), watchers=[AssetWatcher(name=name, trigger=Watching(name))])

assets = [asset(name) for name in NAMES]
dag = DAG("fleet", schedule=AssetAny(*assets))
"""


@pytest.fixture
def home(tmp_path: Path) -> AirflowHome:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "fleet.py").write_text(DAG)
    connection = json.dumps({"conn_type": "kstream", "extra": FIELDS})
    environment = {"PYTHONPATH": str(REPOSITORY), f"AIRFLOW_CONN_{CONNECTION.upper()}": connection}
    home = AirflowHome(tmp_path / "home", tmp_path / "dags", environment, crash=CrashSettings.brisk())
    home.prepare()
    return home


@pytest.fixture
def running(home: AirflowHome) -> Iterator[ProcessSupervisor]:
    with ProcessSupervisor() as supervisor:
        for component in home.components():
            supervisor.start(component)
        home.wait_until_healthy(supervisor, timeout=400)
        yield supervisor


def seen_after(home: AirflowHome, moment: datetime) -> dict[str, StoredState]:
    """Return the streams of which somebody stored a look after this moment."""
    engine = create_engine(f"sqlite:///{home.root}/airflow.db?timeout=30")
    try:
        with Session(engine) as session:
            return {each.stream: each for each in stored_states(session) if each.state and each.state.seen > moment}
    finally:
        engine.dispose()


def test_the_states_of_300_streams_are_current_after_the_triggerer_was_killed(
    home: AirflowHome, running: ProcessSupervisor
) -> None:
    began, api = datetime.now(UTC), home.api()
    await_that(lambda: "fleet" in api.dag_ids(), "the DAG is parsed")
    api.unpause_dag("fleet")
    started = time.monotonic()
    await_that(lambda: len(seen_after(home, began)) == len(NAMES), "each stream's state is stored")
    print(f"stored after {time.monotonic() - started:.0f} s")

    running.kill("triggerer")
    killed, started = datetime.now(UTC), time.monotonic()
    await_that(lambda: len(seen_after(home, killed)) == len(NAMES), "each state is current again")
    print(f"current again {time.monotonic() - started:.0f} s after the kill")
    stored = seen_after(home, killed)
    assert {each.state.generation for each in stored.values() if each.state} == {1}
    assert {each.state.state for each in stored.values() if each.state} == {"running"}
    assert all(each.active for each in stored.values())
