"""Values that nobody can mean are refused by name, with the allowed ones and without a secret; others are accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_kstream.get_provider_info import get_provider_info
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.declarations import TicketDeclaration, TokenDeclaration
from airflow_kstream.model.leases.requests import LeaseDeclaration, OpenFileCondition, RecoveryRequest
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.supervise.clusters.connection import connection_fields
from tests.unit.inputs import bad_clusters, bad_flink_streams, bad_leases, bad_streams, bad_tickets


def rows(table: Mapping[str, Sequence[tuple[Any, str]]]) -> list[Any]:
    return [
        pytest.param(given, says, id=f"{kind}-{number}")
        for kind, group in table.items()
        for number, (given, says) in enumerate(group)
    ]


def readable(refusal: pytest.ExceptionInfo[InvalidInput]) -> bool:
    message = refusal.value.message
    return message.isprintable() and len(message) < 1500 and "hunter2" not in message


@pytest.mark.parametrize(("change", "says"), rows(bad_clusters.BAD))
def test_a_connection_that_nobody_can_mean_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        connection_fields("prod", bad_clusters.GOOD | change)
    assert readable(refusal)


@pytest.mark.parametrize("name", bad_clusters.ACCEPTED)
def test_a_connection_that_can_be_meant_is_read_and_read_again(name: str) -> None:
    fields = connection_fields("prod", bad_clusters.GOOD | bad_clusters.ACCEPTED[name])
    assert connection_fields("prod", vars(fields)) == fields


_OBJECTS = ("spark_conf", "flink_homes", "flink_conf", "allow", "client_environment")


def test_what_the_form_shows_as_an_example_is_accepted() -> None:
    (connection,) = get_provider_info()["connection-types"]
    shown = {**connection["ui-field-behaviour"]["placeholders"]}
    del shown["password"]
    objects = {name: read_mapping(shown[name]) for name in _OBJECTS}
    fields = connection_fields("prod", {**shown, **objects})
    assert fields.spark_conf == {"spark.yarn.queue": "streams"}
    assert fields.flink_homes == {"1.20": "/opt/flink-1.20.3"}
    assert fields.allow == Allow(secrets=("conn:streams_*",), local_files=("/opt/jobs/",))


@pytest.mark.parametrize(("text", "says"), rows(bad_tickets.BAD))
def test_a_ticket_declaration_that_nobody_can_mean_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        TicketDeclaration.from_yaml(text)
    assert readable(refusal)


@pytest.mark.parametrize("name", bad_tickets.ACCEPTED)
def test_a_ticket_declaration_that_can_be_meant_is_read_and_written(name: str) -> None:
    declaration = TicketDeclaration.from_yaml(bad_tickets.ACCEPTED[name])
    assert TicketDeclaration.from_mapping(declaration.to_mapping()) == declaration


@pytest.mark.parametrize(("text", "says"), rows(bad_leases.REQUESTS))
def test_a_recovery_request_that_nobody_can_mean_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        RecoveryRequest.from_mapping(read_mapping(text)).settings()
    assert readable(refusal)


@pytest.mark.parametrize(("text", "says"), rows({"condition": bad_leases.CONDITIONS}))
def test_a_condition_that_nobody_can_mean_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        OpenFileCondition.from_mapping(read_mapping(text))
    assert readable(refusal)


@pytest.mark.parametrize("name", bad_leases.ACCEPTED)
def test_a_recovery_request_that_can_be_meant_says_where_to_search(name: str) -> None:
    fields = read_mapping(bad_leases.ACCEPTED[name])
    assert RecoveryRequest.from_mapping(fields).settings().search.path == fields["path"]


def stream(change: str) -> str:
    """Return the good stream, with the fields of `change` in place of its own."""
    keys = {line.partition(":")[0] for line in change.splitlines()}
    kept = [line for line in bad_streams.GOOD.splitlines() if line.partition(":")[0] not in keys]
    return "\n".join([*kept, change])


@pytest.mark.parametrize(("change", "says"), rows(bad_streams.BAD))
def test_a_stream_that_nobody_can_mean_is_refused_by_name(change: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        StreamSpec.from_yaml(stream(change))
    assert readable(refusal)


@pytest.mark.parametrize("name", bad_streams.ACCEPTED)
def test_a_stream_that_can_be_meant_is_read_and_written(name: str) -> None:
    spec = StreamSpec.from_yaml(stream(bad_streams.ACCEPTED[name]))
    assert StreamSpec.from_mapping(spec.to_mapping()) == spec


def test_a_number_in_a_conf_is_what_yaml_says() -> None:
    conf = StreamSpec.from_yaml(stream(bad_streams.ACCEPTED["numbers and booleans in a conf"])).conf
    assert list(conf.values()) == ["8", "true", "3.10", "no", "0600"]


@pytest.mark.parametrize(
    ("read", "fields"),
    [
        (StreamSpec, {"name": "a", "credentials": {"mode": "ticket"}, "application": "/a.py", "checkpoints": ["/a"]}),
        (LeaseDeclaration, {"paths": ["/data"]}),
        (TicketDeclaration, {}),
        (TokenDeclaration, {"users": ["etl"]}),
    ],
)
def test_no_declaration_holds_a_secret_of_its_tasks_notifiers(read: Any, fields: dict[str, Any]) -> None:
    read.from_mapping(fields)
    notifier = {"notifier": "a.Mail", "kwargs": {"password": "hunter2"}}
    for block in ({"notify": notifier}, {"callbacks": {"on_failure": notifier}}):
        with pytest.raises(InvalidInput, match=r"kwargs.password: a secret in clear") as refusal:
            read.from_mapping({**fields, "airflow": block})
        assert readable(refusal)


def flink_stream(change: str) -> str:
    """Return the good Flink stream with this field instead of its own."""
    field = change.partition(":")[0]
    kept = [line for line in bad_flink_streams.GOOD.splitlines() if not line.startswith(f"{field}:")]
    return "\n".join([*kept, change])


@pytest.mark.parametrize(("change", "says"), bad_flink_streams.BAD)
def test_a_flink_stream_that_nobody_can_mean_is_refused_by_name(change: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        StreamSpec.from_yaml(flink_stream(change))
    assert readable(refusal)


@pytest.mark.parametrize("text", bad_flink_streams.ACCEPTED.values(), ids=bad_flink_streams.ACCEPTED.keys())
def test_a_flink_stream_that_somebody_can_mean_is_read(text: str) -> None:
    spec = StreamSpec.from_yaml(text)
    assert isinstance(spec, FlinkStreamSpec)
    assert StreamSpec.from_mapping(spec.to_mapping()) == spec
