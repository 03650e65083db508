"""A stream's declaration: what is taken, what is refused, and how the refusal reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.durations import format_duration, parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.stream import StreamSpec, differences
from tests.unit.simulated_yarn import TICKET_SPEC

YAML = """
name: orders
credentials: {mode: keytab, principal: streamer/edge@EXAMPLE.COM, keytab: /etc/streamer.keytab}
application: /jobs/orders.py
checkpoints: [/data/orders/checkpoint]
conf: {spark.sql.shuffle.partitions: "8"}
deploy: {queue: streams, executors: 4}
restart: {plan_ratio: 0.5, silence: 45s, max_age: 30d}
on_change: restart
"""


def test_a_declaration_in_yaml_is_the_same_as_its_plain_data() -> None:
    spec = StreamSpec.from_yaml(YAML)
    assert spec.restart.silence == timedelta(seconds=45)
    assert StreamSpec.from_mapping(spec.to_mapping()) == spec


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("nmae: orders\n", r"nmae is not a field of a stream; allowed here: .*\bname\b"),
        ("deploy: {quue: a}\n", r"deploy.quue is not a field .* queue"),
        ("restart: {silence: soon}\n", r"restart.silence: .*'soon' is not a duration"),
        ("restart: {plan_ratio: 2}\n", r"plan_ratio is 2.0; allowed is a number between 0 and 1"),
        ("credentials: {mode: password}\n", r"'password' found using 'mode' .*'keytab', 'ticket', 'proxy-user'"),
        ("credentials: {mode: keytab, principal: me, keytab: /k}\n", r"'me' is not a principal"),
        (
            "credentials: {mode: ticket, user: me}\n",
            r"credentials.user is not a field .* cache, keytab, mode, principal",
        ),
        ("name: Orders\n", r"name is 'Orders'; allowed are 1 to 50 of a-z"),
        ("checkpoints: [relative/path]\n", r"checkpoints has 'relative/path'"),
        ("on_change: panic\n", r"on_change: .*'report' or 'restart'"),
    ],
)
def test_what_is_wrong_is_refused_by_name_with_what_is_allowed(change: str, says: str) -> None:
    key = change.partition(":")[0]
    kept = "\n".join(line for line in YAML.splitlines() if not line.startswith(f"{key}:"))
    with pytest.raises(InvalidInput, match=says):
        StreamSpec.from_yaml(f"{kept}\n{change}")


def test_restart_policy_alone_is_not_another_job() -> None:
    spec = StreamSpec.from_yaml(YAML)
    calmer = replace(spec, restart=replace(spec.restart, plan_ratio=0.6))
    assert calmer.fingerprint() == spec.fingerprint()
    assert differences(calmer, spec.to_mapping()) == ()
    assert differences(replace(spec, arguments=("--fast",)), spec.to_mapping()) == ("arguments",)


def test_two_installations_with_streams_of_one_name_have_different_tags() -> None:
    ours, theirs = StreamId("orders", "/kstream"), StreamId("orders", "/elsewhere")
    assert ours.tag != theirs.tag
    assert theirs.generation_of(frozenset(ours.tags(7))) is None
    assert ours.generation_of(frozenset(ours.tags(7))) == 7


def test_tags_fit_into_what_yarn_takes() -> None:
    longest = StreamId("a" * 50, "/kstream")
    assert all(len(tag) <= 100 and tag == tag.lower() and tag.isascii() for tag in longest.tags(10**9))


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_a_duration_that_was_written_down_in_seconds_is_read_back(duration: timedelta) -> None:
    assert abs(parse_duration(f"{duration.total_seconds():f}s") - duration) < timedelta(milliseconds=1)


def test_durations_read_as_people_say_them() -> None:
    assert parse_duration("1h30m") == timedelta(hours=1, minutes=30)
    assert format_duration(timedelta(days=6, hours=23, minutes=5)) == "6d 23h"
    assert format_duration(timedelta(seconds=-14)) == "-14s"
    assert format_duration(TICKET_SPEC.restart.silence) == "30s"


def test_a_secret_that_did_not_change_is_no_difference_to_what_runs_and_is_not_written_down() -> None:
    spec = StreamSpec.from_yaml(YAML.replace("conf: {", 'conf: {spark.ssl.keyPassword: "hunter2", '))
    spec = replace(spec, deploy=replace(spec.deploy, environment={"DB_PASSWORD": "hunter2"}))
    assert "hunter2" not in str(spec.to_masked_mapping())
    assert differences(spec, spec.to_masked_mapping()) == ()
