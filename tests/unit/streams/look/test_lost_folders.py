"""`kstream streams status` on streams that run and have no folder in state_dir: somebody has to decide.

Simulated servers: a folder that goes while its stream runs is what is tested.
"""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import KstreamError, NotFound, Unavailable
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.look.status import standing
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import lines
from tests.simulated.folders import order_path
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER

FIRST, SECOND = "application_1_0001", "application_1_0002"
ADOPT = "`kstream streams adopt SPEC.yaml --application-id {}` takes it up again"


@pytest.fixture
def running(life: Life, served: None) -> Life:
    """A stream that runs beside another one that was never submitted."""
    other = StreamId("other", CLUSTER.state_dir)
    life.hdfs.make_folder(other.folder, "755")
    life.hdfs.write(order_path(other), '{"version": 3, "state": "held"}')
    life.begin()
    return life


def lose(life: Life, *, all_of_it: bool = False) -> None:
    life.hdfs.delete(CLUSTER.state_dir if all_of_it else life.run.id.folder, recursive=True)


def shown(life: Life, name: str = "") -> dict[str, Verdict]:
    return dict(standing(life.run.session, name))


def test_a_stream_that_has_its_folder_is_shown_as_it_stands(running: Life) -> None:
    verdicts = shown(running)
    assert {name: verdict.step is None for name, verdict in verdicts.items()} == {"orders": False, "other": False}
    assert list(shown(running, "orders")) == ["orders"]
    with pytest.raises(NotFound, match="/kstream has orders, other"):
        shown(running, "clicks")


@pytest.mark.parametrize("all_of_it", [False, True])
@pytest.mark.parametrize("name", ["", "orders"])
def test_one_that_lost_its_folder_is_shown_with_its_way_out(running: Life, all_of_it: bool, name: str) -> None:
    lose(running, all_of_it=all_of_it)
    verdict = shown(running, name)["orders"]
    assert (verdict.step, verdict.generation, verdict.application, verdict.lives) == (None, 1, FIRST, True)
    assert f"{FIRST} of user streamer is RUNNING, and /kstream has no folder of this stream" in verdict.why
    assert ADOPT.format(FIRST) in verdict.why
    assert "Nothing follows it at its horizon until somebody has decided" in verdict.why
    assert FIRST in "".join(lines(streams_table({"orders": verdict})))
    assert verdict.to_json()["step"] == "unknown"


def test_the_way_out_works(running: Life) -> None:
    lose(running)
    adopt(running.run, FIRST)
    assert shown(running)["orders"].step is not None


def test_of_several_generations_the_newest_may_be_kept(running: Life) -> None:
    lose(running)
    running.yarn.start(frozenset(running.run.id.tags(2)))
    verdict = shown(running)["orders"]
    assert (verdict.generation, verdict.application) == (2, SECOND)
    assert f"to keep {SECOND}: `yarn application -kill {FIRST}`; then {ADOPT.format(SECOND)}" in verdict.why


def test_what_has_ended_or_is_another_installations_is_not_listed(running: Life) -> None:
    lose(running)
    running.yarn.end(FIRST, ApplicationState.FAILED)
    running.yarn.start(frozenset(StreamId("orders", "/elsewhere").tags(1)))
    running.yarn.start(frozenset({"kstream", "kstream-stream-orders"}))
    assert set(shown(running)) == {"other"}


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (StreamId("orders", "/kstream").tags(1), True),
        ((*StreamId("clicks", "/elsewhere").tags(1), *StreamId("orders", "/kstream").tags(1)), True),
        (StreamId("orders", "/elsewhere").tags(1), False),
        (("kstream", "kstream-stream-orders"), False),
        (("kstream", StreamId("../other", "/kstream").tag), False),
    ],
)
def test_tags_name_a_stream_of_this_state_dir_alone(tags: tuple[str, ...], found: bool) -> None:
    stream = StreamId("orders", "/kstream") if found else None
    assert StreamId.of_tags(frozenset(tags), "/kstream") == stream


def test_nothing_at_all_is_no_empty_table(running: Life) -> None:
    lose(running, all_of_it=True)
    running.yarn.end(FIRST, ApplicationState.FAILED)
    with pytest.raises(NotFound):
        shown(running)


def test_it_costs_one_listing_however_many_streams_there_are(running: Life) -> None:
    for number in range(5):
        running.yarn.start(frozenset(StreamId(f"s{number}", CLUSTER.state_dir).tags(1)))
    asked: list[str] = []
    running.yarn.at_request = lambda request, about: asked.append(about)
    assert len(shown(running)) == 7
    assert asked.count("kstream") == 2, "the round's own, and one"
    assert not any("-s1-" in tag for tag in asked)


def test_a_resourcemanager_that_is_away_hides_no_stream_that_has_its_folder(running: Life) -> None:
    def away(request: str, about: str) -> None:
        raise Unavailable("no ResourceManager is active")

    running.yarn.at_request = away
    assert {name: verdict.why for name, verdict in shown(running).items()}.keys() == {"orders", "other"}
    lose(running, all_of_it=True)
    with pytest.raises(KstreamError, match="no ResourceManager is active"):
        shown(running)
