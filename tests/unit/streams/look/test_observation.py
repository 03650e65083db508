"""What an observation of a stream concludes from what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.generation import Desired
from airflow_kstream.model.streams.observation import Observation
from tests.simulated.yarn import START, STREAM, application

RUNNING = ApplicationState.RUNNING


class Names(frozenset[str]):
    """File names that count how often somebody goes through them."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return super().__iter__()


def test_the_files_of_a_stream_are_gone_through_once_for_all_its_applications() -> None:
    """YARN lists a thousand applications by default, and each decision asks for the newest one."""
    files = Names({stop_marker(number) for number in range(1, 10)})
    apps = tuple((number, application(number, RUNNING)) for number in range(1, 9))
    seen = Observation(STREAM, START, Desired(), None, files, apps, ())
    for _ in range(3):
        assert (seen.generation, seen.current) == (9, None)
    assert files.looks == 1


def test_a_later_observation_concludes_from_its_own_files() -> None:
    seen = Observation(STREAM, START, Desired(), None, frozenset({stop_marker(1)}), ((1, application(1, RUNNING)),), ())
    assert (seen.generation, seen.current) == (1, application(1, RUNNING))
    later = replace(seen, files=frozenset({stop_marker(1), stop_marker(2)}))
    assert (later.generation, later.current) == (2, None)
    assert seen == replace(seen)


def test_the_first_of_two_that_live_is_the_generations_however_many_yarn_counted() -> None:
    """As text the ten thousandth application comes before the others."""
    first, second = (application(1, RUNNING, number=number) for number in (9999, 10000))
    seen = Observation(STREAM, START, Desired(), None, frozenset(), ((1, second), (1, first)), ())
    assert seen.current == first
    ended = replace(first, state=ApplicationState.KILLED), replace(second, state=ApplicationState.KILLED)
    assert replace(seen, applications=tuple((1, app) for app in ended)).current == ended[1]
