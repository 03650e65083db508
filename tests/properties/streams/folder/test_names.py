"""No two streams share anything that is named after them, and an id that somebody is advised to write is one."""

from __future__ import annotations

import re

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_kstream.assets import asset_uri, subject_of
from airflow_kstream.dags.ids import namesake, stream_id
from airflow_kstream.model.clusters.authors import file_about, order_name, order_of
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.names import advised_id, allowed_for, called, is_app_name
from airflow_kstream.model.streams.event import ToldSubject, is_told_of
from airflow_kstream.model.streams.generation import StreamId

# Names that look like each other's tags, files and ids are put together of these.
_PARTS = ("a", "b", "-", "--", "_", "__", "0", "1-2", "gen", "stream", "freeze", "fdb55c8c", "0" * 32, "cluster")
IDS = st.lists(st.sampled_from(_PARTS), min_size=1, max_size=6).map("".join).filter(is_stream_name)
# What Airflow lets a connection be called.
CONNECTIONS = st.one_of(
    st.lists(st.sampled_from((*_PARTS, ".", ":", "/", "#", "a" * 190)), min_size=1, max_size=6).map("".join),
    st.from_regex(r"[\w#!()\-.:/\\]{1,250}", fullmatch=True, alphabet=st.characters(codec="ascii")),
)
STREAMS = st.tuples(CONNECTIONS, IDS)
STATE_DIRS = st.sampled_from(("/kstream", "/kstream2", "/k/stream"))
GENERATIONS = st.integers(1, 999_999_999)


@given(IDS, STATE_DIRS, IDS, STATE_DIRS, GENERATIONS)
def test_no_two_streams_share_a_tag_a_folder_or_an_order(
    one: str, its: str, other: str, others: str, generation: int
) -> None:
    assume((one, its) != (other, others))
    ours, theirs = StreamId(one, its), StreamId(other, others)
    tags, strange = frozenset(ours.tags(generation)), frozenset(theirs.tags(generation))
    assert tags & strange == {"kstream"}
    assert ours.generation_of(tags) == generation
    assert ours.generation_of(strange) is None
    assert StreamId.of_tags(tags, its) == ours
    assert StreamId.of_tags(strange, its) != ours
    assert ours.folder != theirs.folder
    assert order_of(order_name(str(ours), generation)) == (str(ours), generation)
    assert order_name(str(ours), 1) != order_name(str(theirs), 1)


@given(IDS, STATE_DIRS, GENERATIONS)
def test_yarn_takes_the_tags_of_every_id_and_changes_none(name: str, state_dir: str, generation: int) -> None:
    for tag in StreamId(name[:50], state_dir).tags(generation):
        assert len(tag) <= 100
        assert tag.isascii()
        assert tag == tag.lower()


@given(STREAMS, STREAMS)
def test_no_two_streams_share_a_note_a_row_or_a_dag(one: tuple[str, str], other: tuple[str, str]) -> None:
    assume(one != other)
    ours, theirs = ToldSubject("", *one).file_name, ToldSubject("", *other).file_name
    assert ours != theirs
    assert is_told_of(one[1], ours)
    assert is_told_of(other[1], ours) == (one[1] == other[1])
    assert not is_told_of(one[1], file_about("cluster.watched", one[1]))
    assert asset_uri(*one) != asset_uri(*other)
    assert subject_of(asset_uri(*one)) == one
    # Of two connections whose ids differ in what no DAG's id can hold, one gets no DAGs, and is told why.
    if stream_id(*one) == stream_id(*other):
        assert one[1] == other[1]
        clusters = {one[0], other[0]}
        assert sum(bool(namesake(cluster, clusters)) for cluster in clusters) == 1


@given(st.sets(CONNECTIONS, min_size=1, max_size=6), CONNECTIONS)
def test_a_connection_that_a_dags_id_can_hold_keeps_its_dags(others: set[str], one: str) -> None:
    assume(re.fullmatch(r"[\w.-]{1,180}", one))
    assert namesake(one, {*others, one}) == ""


@given(st.text(max_size=200))
def test_an_advised_id_is_one_and_what_to_write_is_read_so(text: str) -> None:
    assume(not is_stream_name(text))
    advised = advised_id(text)
    assert advised == "" or is_stream_name(advised)
    written = re.findall(r"`((?:app_)?name: .*?)`(?= with |$)", allowed_for(text), re.DOTALL)
    fields = {key: value for line in written for key, value in yaml.safe_load(line).items()}
    expected = {"name": advised, "app_name": text} if is_app_name(text) else {"name": advised}
    assert fields == (expected if advised else {})


@given(IDS)
def test_an_id_needs_no_advice(name: str) -> None:
    assert advised_id(name) == name
    assert called(name, name) == called(name, "") == called(name, None) == name


@given(IDS, st.text())
def test_a_name_is_shown_as_one_short_line_with_the_id(name: str, app_name: str) -> None:
    shown = called(name, app_name)
    assert shown.isprintable()
    assert len(shown) <= 100 + len(f" ({name})")
    assert shown.endswith((f" ({name})", name))
