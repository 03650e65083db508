"""The schema that editors get is the reader's own: it accepts what that accepts, and refuses what a schema can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from airflow_kstream.model.declaration_kinds import LEASES, STREAMS, TICKETS, TOKENS, DeclarationKind, schema_of
from airflow_kstream.model.streams.stream import POLICIES, FlinkStreamSpec, StreamSpec
from airflow_kstream.model.yaml_text import read_mapping
from tests.unit.inputs import bad_flink_streams, bad_streams, bad_tickets
from tests.unit.inputs.test_declarations import flink_stream, stream

PAGES = sorted((Path(__file__).parents[3] / "docs").rglob("*.md"))
# The words of refusals that no schema can make: it knows no escapes, lengths of time, secrets or other fields.
BEYOND = re.compile(
    r"\\[xn]|\\u202e|a secret in clear|is given twice|none is or holds another|longer than anything lasts"
    r"|allowed is ((an|the) absolute (HDFS )?path|[0-9.]+(s|m|ms) to [0-9]+d|text without NUL)"
    r"|conf (sets|takes) \S+[= ]|is not a duration|kwargs is given|jitter_ratio is|' /|more than once|has both|'.nan'"
    r"|allowed is (one folder, below|two ports|a folder)|lies in the checkpoints|kafka: remove it"
    r"|begin with kstream|allowed is 2 or more"
)
TOKEN_FILES = ("users: [alice]", "tags: [nightly]\nwithin: 2d\nevery: 30m", "files: [/run/a.token, 'hdfs:///t/b']")


def as_an_editor_reads(text: str) -> Any:
    """Return what YAML means without our reader: numbers are numbers, and `no` is false."""
    return yaml.safe_load(text) or {}


@cache
def validator(kind: DeclarationKind) -> Draft202012Validator:
    schema = kind.schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def red(kind: DeclarationKind, text: str) -> list[str]:
    """Return what an editor marks."""
    return [error.message for error in validator(kind).iter_errors(as_an_editor_reads(text))]


def from_pages() -> Iterator[tuple[DeclarationKind, str]]:
    """Yield each whole declaration that the documentation shows."""
    keys = {"name:": STREAMS, "paths:": LEASES, "principals:": TICKETS}
    for page in PAGES:
        blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
        yield from ((keys[word], block) for block in blocks if (word := block.split()[0]) in keys)


ACCEPTED = [
    *((STREAMS, stream(change)) for change in bad_streams.ACCEPTED.values()),
    *((STREAMS, text) for text in bad_flink_streams.ACCEPTED.values()),
    *((TICKETS, text) for text in bad_tickets.ACCEPTED.values()),
    *((TOKENS, text) for text in TOKEN_FILES),
    *from_pages(),
]
REFUSED = [
    *((STREAMS, stream(change)) for group in bad_streams.BAD.values() for change, _ in group),
    *((STREAMS, flink_stream(change)) for change, _ in bad_flink_streams.BAD),
    *((TICKETS, text) for group in bad_tickets.BAD.values() for text, _ in group),
    (LEASES, "paths: []"),
    (LEASES, "paths: [/data]\nlimits: wild"),
    (LEASES, "paths: [/data]\nin_all: 0"),
    (LEASES, "paths: [data]"),
    (TOKENS, "users: [alice]\nwithin: soon"),
    (TOKENS, "applications: [application_1]"),
]


def test_the_pages_show_declarations_of_several_kinds() -> None:
    assert {kind.type for kind, _ in from_pages()} == {STREAMS.type, LEASES.type, TICKETS.type}


@pytest.mark.parametrize(("kind", "text"), ACCEPTED)
def test_what_the_reader_accepts_has_no_red_line(kind: DeclarationKind, text: str) -> None:
    assert kind.faults(text) == ()
    assert red(kind, text) == []


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_what_the_reader_refuses_is_red_where_a_schema_can_say_it(kind: DeclarationKind, text: str) -> None:
    faults = kind.faults(text)
    assert faults
    # What is not YAML is red without a schema; PyYAML's own parser refuses numbers of thousands of digits, too.
    with suppress(yaml.YAMLError, ValueError):
        assert red(kind, text) or all(BEYOND.search(fault) for fault in faults), faults


@pytest.mark.parametrize("key", ["pipeline.jars", "fs.hdfs.hdfssite"])
def test_a_setting_of_flinks_that_no_stream_may_have_is_red(key: str) -> None:
    assert red(STREAMS, flink_stream("")) == []
    assert red(STREAMS, flink_stream(f"conf: {{{key}: /a}}"))


def test_each_default_that_an_editor_inserts_is_the_readers_own() -> None:
    """Durations among them, which JSON schema would write as PT1H."""
    given, kinds = read_mapping(bad_streams.GOOD), schema_of(StreamSpec)["$defs"]
    inserted = {
        name: {
            field: said["default"] for field, said in kinds[policy.__name__]["properties"].items() if "default" in said
        }
        for name, policy in POLICIES.items()
    }
    assert inserted["restart"]["force_margin"] == "1h"
    assert StreamSpec.from_mapping(given | inserted) == StreamSpec.from_mapping(given)


def test_a_field_says_what_it_is_in_the_words_of_its_class() -> None:
    policy = schema_of(StreamSpec)["$defs"]["RestartPolicy"]["properties"]
    assert "`max_age`" in policy["max_age"]["description"]
    recovery = schema_of(LEASES.type)["properties"]
    assert "settings of Flink's" in schema_of(FlinkStreamSpec)["properties"]["conf"]["description"]
    assert "Younger files are left alone" in recovery["min_age"]["description"]


@pytest.mark.parametrize("kind", [STREAMS, LEASES, TICKETS, TOKENS])
def test_each_field_says_what_it_is(kind: DeclarationKind) -> None:
    schema = kind.schema()
    classes = {"": schema, **schema["$defs"]}
    said = {
        (name, field): words for name, each in classes.items() for field, words in each.get("properties", {}).items()
    }
    assert [place for place, words in said.items() if not words.get("description")] == []


def test_a_field_of_several_fields_says_what_they_are_for() -> None:
    fields = schema_of(StreamSpec)["properties"]
    assert fields["restart"]["description"] == "The rules for replacing a generation."
    assert fields["on_change"]["description"] == "The reaction to a declared spec that differs from the running one."


@pytest.mark.parametrize("kind", [STREAMS, LEASES, TICKETS, TOKENS])
def test_no_word_of_an_example_stands_in_what_a_field_means(kind: DeclarationKind) -> None:
    said = [field["description"] for field in schema_of(kind.type)["properties"].values() if "description" in field]
    assert said
    assert [words for words in said if "from_yaml" in words or "SecretRef(" in words] == []
