"""A stream's declaration: accepted values, refused values, and the words of each refusal."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.dags.ids import stream_id
from airflow_kstream.model.clusters.authors import order_name
from airflow_kstream.model.durations import format_duration, parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.declarations import differences, fingerprint, read_spec
from airflow_kstream.model.streams.event import ToldSubject
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from tests.simulated.yarn import TICKET_SPEC

YAML = """
name: orders
credentials: {mode: keytab, principal: streamer/edge@EXAMPLE.COM, keytab: /etc/streamer.keytab}
application: /jobs/orders.py
checkpoints: [/data/orders/checkpoint]
conf: {spark.sql.shuffle.partitions: "8"}
deploy: {queue: streams, executors: 4}
restart: {plan_ratio: 0.5, max_age: 30d}
stop: {silence: 45s}
on_change: restart
"""


def test_a_declaration_in_yaml_is_the_same_as_its_plain_data() -> None:
    spec = StreamSpec.from_yaml(YAML)
    assert spec.stop.silence == timedelta(seconds=45)
    assert StreamSpec.from_mapping(spec.to_mapping()) == spec


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("nmae: orders\n", r"nmae: there is no such field; the fields are .*\bname\b"),
        ("deploy: {quue: a}\n", r"deploy.quue: there is no such field; the fields of deploy are queue"),
        ("stop: {silence: soon}\n", r"stop.silence: .*'soon' is not a duration"),
        ("stop: {silence: -1}\n", r"stop.silence: .*-1s is negative; allowed is 0s or longer"),
        ("stop: {silence: -1s}\n", r"stop.silence: .*'-1s' is not a duration"),
        ("stop: {silence: .nan}\n", r"stop.silence: "),
        ("stop: {silence: .inf}\n", r"stop.silence: "),
        ("stop: {silence: true}\n", r"stop.silence: true and false are not durations"),
        ("heartbeat: {stall_factor: .nan}\n", r"heartbeat.stall_factor is '.nan'; allowed is a number"),
        (
            "restart: {silence: 45s}\n",
            r"restart.silence: there is no such field; .* force_margin, max_age, adopt_margin",
        ),
        ("restart: {plan_ratio: 2}\n", r"plan_ratio is 2; allowed is a number between 0 and 1"),
        (
            "credentials: {mode: password}\n",
            r"credentials.mode is 'password'; allowed is 'keytab', 'ticket', 'proxy-user'",
        ),
        (
            "credentials: {mode: keytab, principal: me, keytab: /k}\n",
            r"credentials.principal is 'me'; allowed is primary",
        ),
        (
            "credentials: {mode: ticket, user: me}\n",
            r"credentials.user: there is no such field; .* principal, keytab, cache, refresh, mode",
        ),
        ("name: Orders\n", r"name is 'Orders'; allowed is 1 to 50 of a-z"),
        ("checkpoints: [relative/path]\n", r"checkpoints.0 is 'relative/path'"),
        ("on_change: panic\n", r"on_change is 'panic'; allowed is 'report' or 'restart'"),
    ],
)
def test_what_is_wrong_is_refused_by_name_with_what_is_allowed(change: str, says: str) -> None:
    key = change.partition(":")[0]
    kept = "\n".join(line for line in YAML.splitlines() if not line.startswith(f"{key}:"))
    with pytest.raises(InvalidInput, match=says):
        StreamSpec.from_yaml(f"{kept}\n{change}")


def test_a_declaration_chooses_its_checkpoints_or_says_that_it_has_none() -> None:
    undeclared = YAML.replace("checkpoints: [/data/orders/checkpoint]\n", "")
    with pytest.raises(InvalidInput, match=r"checkpoints is missing; give the folders on HDFS .* or 'none' for a job"):
        StreamSpec.from_yaml(undeclared)
    none = StreamSpec.from_yaml(undeclared + "checkpoints: none\n")
    assert none.checkpoints == ()
    assert none.checked() == none


def test_two_installations_with_streams_of_one_name_have_different_tags() -> None:
    ours, theirs = StreamId("orders", "/kstream"), StreamId("orders", "/elsewhere")
    assert ours.tag != theirs.tag
    assert theirs.generation_of(frozenset(ours.tags(7))) is None
    assert ours.generation_of(frozenset(ours.tags(7))) == 7


def test_tags_fit_into_what_yarn_takes() -> None:
    longest = StreamId("a" * 50, "/kstream")
    assert all(len(tag) <= 100 and tag == tag.lower() and tag.isascii() for tag in longest.tags(10**9))


def test_durations_read_as_people_say_them() -> None:
    assert parse_duration("1h30m") == timedelta(hours=1, minutes=30)
    assert format_duration(timedelta(days=6, hours=23, minutes=5)) == "6d 23h"
    assert format_duration(timedelta(seconds=-14)) == "-14s"
    assert format_duration(TICKET_SPEC.stop.silence) == "30s"


def test_what_is_named_after_a_stream_is_as_it_was_before_ids_had_underscores() -> None:
    """Seen with the release before: another name would start a second application beside the one that runs."""
    stream = StreamId("orders-2", "/kstream")
    assert stream.folder == "/kstream/orders-2-fdb55c8c"
    assert stream.tags(7) == ("kstream", "kstream-stream-orders-2-fdb55c8c", "kstream-gen-orders-2-fdb55c8c-7")
    assert order_name(str(stream), 3) == "orders-2-fdb55c8c.000003.json"
    assert ToldSubject("", "prod", "orders-2").file_name == "orders-2-902a3bffc8963577cb9af98c408c6128"
    assert stream_id("prod", "orders-2") == "stream-prod.orders-2"
    spec = StreamSpec("orders-2", TicketCredentials(), "hdfs:///apps/orders.py", checkpoints=("/c",))
    assert fingerprint(spec) == "2:9b31055f920a66c4"


def test_an_app_name_is_of_the_job_and_is_kept_with_it() -> None:
    spec = replace(TICKET_SPEC, app_name="Orders.Stream v2")
    assert read_spec(spec.to_mapping()) == spec
    assert differences(spec, TICKET_SPEC) == ("app_name",)
    assert fingerprint(spec) != fingerprint(TICKET_SPEC)


@pytest.mark.parametrize("said", ["\x1b[2J", "--conf", "a\nb", "a" * 101, "", 7, ["Orders"], None])
def test_a_claim_with_an_app_name_that_no_declaration_can_give_has_none(said: object) -> None:
    """Its job may have written it, and a successor's command line is made of it. All else in the claim still counts."""
    assert read_spec({**TICKET_SPEC.to_mapping(), "app_name": said}) == TICKET_SPEC
