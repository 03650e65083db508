"""What a named supervisor stopped or froze stays so while somebody replaces the file that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from tests.simulated.fixtures import lived
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, session_of

FILE = f"{CLUSTER.state_dir}/{SUPERVISORS_FILE}"


@pytest.fixture
def life() -> Iterator[Life]:
    """Return a stream and a supervisor whom only the file names."""
    with lived() as life:
        life.hdfs.modes[CLUSTER.state_dir] = "1777"
        life.hdfs.write(FILE, "ops\n")
        yield life


def ordered_by_ops(life: Life, order: Callable[[], object]) -> None:
    ours = life.run
    with life.hdfs.as_user("ops"):
        life.run = replace(ours, session=session_of(life.hdfs, life.yarn))
        order()
    life.run = ours


def deleted(life: Life) -> None:
    life.hdfs.delete(FILE)


def replaced(life: Life) -> None:
    """Look at what `hdfs dfs -put -f` leaves for a moment, with a session that begins then."""
    life.hdfs.rename_over(FILE, f"{FILE}._COPYING_")
    life.run = replace(life.run, session=session_of(life.hdfs, life.yarn))


@pytest.mark.parametrize("change", [deleted, replaced])
def test_a_stop_holds_while_the_file_is_replaced(life: Life, change: Callable[[Life], None]) -> None:
    ordered_by_ops(life, lambda: life.set_desired(DesiredState.STOPPED))
    assert life.reconcile(Mode.ENSURE).phase is Phase.STOPPED
    change(life)
    assert life.reconcile(Mode.ENSURE).phase is Phase.STOPPED
    assert not life.yarn.apps


@pytest.mark.parametrize("change", [deleted, replaced])
def test_a_freeze_holds_while_the_file_is_replaced(life: Life, change: Callable[[Life], None]) -> None:
    ordered_by_ops(life, lambda: FreezeStore(life.run.session).freeze(timedelta(hours=4), "moving Kafka"))
    assert FreezeStore(life.run.session).newest().holds(life.hdfs.now())
    change(life)
    assert FreezeStore(life.run.session).newest().holds(life.hdfs.now())
