"""What a checkpoint says of Kafka's topics, and what waits beyond."""

from __future__ import annotations

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import Backlog, KafkaPolicy, backlog, planned_offsets, reads_more
from tests.simulated.yarn import TICKET_SPEC

# No resolver takes them: Python's raises an error of its own for some.
NAMES_OF_NO_HOST = ("kafka..example.com", ".", "k." * 127, f"{'k' * 64}.example.com", "a" * 64, f"fe80::1%{'e' * 60}")
LONGEST_PART = "k" * 63
LONGEST_NAME = f"{LONGEST_PART}.{LONGEST_PART}.{LONGEST_PART}.{'k' * 61}"
OF_NO_KAFKA = {
    "as deep as the stack": "[" * 100_000,
    "infinite": '{"events":{"0":Infinity}}',
    "beyond a float": '{"events":{"0":1e400}}',
    "not a number": '{"events":{"0":NaN}}',
    "beyond Python's digits": f'{{"events":{{"0":{"9" * 5000}}}}}',
    "a partition below zero": '{"events":{"-1":42}}',
    "a partition beyond an int32": '{"events":{"2147483648":42}}',
    "a topic with a space": '{"no topic":{"0":42}}',
    "a topic with half a character": '{"\\ud800":{"0":42}}',
    "a long topic": f'{{"{"e" * 250}":{{"0":42}}}}',
}
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}'


def offsets_file(*sources: str) -> str:
    return "\n".join(("v1", METADATA, *sources))


def test_the_offsets_of_each_kafka_source_are_read_and_no_others() -> None:
    kafka = '{"events":{"0":42,"1":7},"clicks":{"0":3}}', '{"other":{"0":1}}'
    text = offsets_file(*kafka, "1234", '{"logOffset":5}', "-")
    assert planned_offsets(text) == {"events": {0: 42, 1: 7}, "clicks": {0: 3}, "other": {0: 1}}
    assert planned_offsets(offsets_file("1234")) == {}
    assert planned_offsets("") == {}


def test_sources_are_read_by_their_ids_in_version_2_of_the_file() -> None:
    """As of Spark 4.2 (OffsetMap): a query whose sources have names or ids."""
    text = "\n".join(("v2", METADATA, '0:{"events":{"0":42}}', "1:1234", 'clicks:{"clicks":{"0":3}}', "3:-"))
    assert planned_offsets(text) == {"events": {0: 42}, "clicks": {0: 3}}
    assert reads_more(text)
    assert not reads_more(text.replace("1:1234\n", "").replace("\n3:-", ""))


def test_a_query_reads_more_than_kafka_if_it_has_another_source() -> None:
    """A dash is one that has no offset yet: it may have records all the same."""
    kafka = '{"events":{"0":42}}'
    assert not reads_more(offsets_file(kafka, kafka))
    assert all(reads_more(offsets_file(kafka, other)) for other in ("1234", '{"logOffset":5}', "made up", "-"))


@pytest.mark.parametrize("line", OF_NO_KAFKA.values(), ids=OF_NO_KAFKA)
def test_a_line_that_no_kafka_source_wrote_is_another_sources(line: str) -> None:
    """The file is the job's own: its user may write anything in it."""
    text = offsets_file(line, '{"clicks":{"0":3}}')
    assert planned_offsets(text) == {"clicks": {0: 3}}
    assert reads_more(text)


def test_of_a_topic_that_is_read_twice_the_source_that_is_behind_counts() -> None:
    assert planned_offsets(offsets_file('{"events":{"0":42}}', '{"events":{"0":40}}')) == {"events": {0: 40}}


def test_what_waits_is_counted_by_partition_and_unknown_ends_count_for_nothing() -> None:
    planned = {"events": {0: 42, 1: 7}, "clicks": {0: 3}}
    assert backlog(planned, {"events": {0: 50, 1: 7}, "clicks": {0: 3}}) == Backlog(8, ("events",))
    assert backlog(planned, {"events": {0: 42}}) == Backlog(0)
    # A topic that was deleted and made again begins at zero.
    assert backlog(planned, {"events": {0: 1, 1: 9}}) == Backlog(2, ("events",))


def test_brokers_are_host_and_port_and_the_refusal_shows_no_password() -> None:
    declared = TICKET_SPEC.to_mapping() | {"kafka": {"bootstrap_servers": "broker1:9092,broker2:9092"}}
    assert StreamSpec.from_mapping(declared).kafka == KafkaPolicy("broker1:9092,broker2:9092")
    wrongs = "broker1", "broker1:9092,", "kafka://broker1:9092", "broker1:9092,broker1:9092", "a:b@broker:9092"
    for wrong in (*wrongs, *(f"{name}:9092" for name in NAMES_OF_NO_HOST)):
        with pytest.raises(InvalidInput, match="host:port, several with commas between them") as refused:
            StreamSpec.from_mapping(declared | {"kafka": {"bootstrap_servers": wrong}})
        assert "a:b@" not in str(refused.value)


@pytest.mark.parametrize("host", [LONGEST_PART, LONGEST_NAME, "k.example.com", "10.0.0.1", "[::1]", "[fe80::1%eth0]"])
def test_a_broker_may_have_any_name_and_address_that_a_host_can_have(host: str) -> None:
    declared = TICKET_SPEC.to_mapping() | {"kafka": {"bootstrap_servers": f"{host}:9092"}}
    assert StreamSpec.from_mapping(declared).kafka.brokers == (f"{host}:9092",)


def test_the_refusal_of_a_broker_says_how_long_its_name_can_be() -> None:
    declared = TICKET_SPEC.to_mapping() | {"kafka": {"bootstrap_servers": f"{LONGEST_NAME}k:9092"}}
    with pytest.raises(InvalidInput, match="a host's name has up to 253 characters, 1 to 63 of them between dots"):
        StreamSpec.from_mapping(declared)
