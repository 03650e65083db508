"""Tokens for tests to write and to read, and all texts that an error can show."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials, TokenFormat
from airflow_kstream.model.kerberos.tokens import AttemptToken, DelegationToken, Identifier, KafkaToken
from tests.simulated.hadoop_writers import (
    WRITABLE_KINDS,
    YARN_KINDS,
    Written,
    identifier_bytes,
    java_file,
    protobuf_file,
    writable,
)

ISSUED = datetime(2026, 1, 1, tzinfo=UTC)
HERS = DelegationToken("streamer@EXAMPLE.COM", "yarn", "gateway", ISSUED, ISSUED + timedelta(days=7), 42, 2)
PASSWORD = b"\xfbhunter2\xff-and-12-more"
HDFS = Written("ha-hdfs:prod", "HDFS_DELEGATION_TOKEN", "ha-hdfs:prod", writable(HERS), PASSWORD)
SECRETS = (("spark.authenticate.secret", b"k3y-of-the-job"),)
WRITERS = {TokenFormat.JAVA: java_file, TokenFormat.PROTOBUF: protobuf_file}
FORMATS = pytest.mark.parametrize("form", WRITERS)


def read(content: bytes) -> HadoopCredentials:
    return HadoopCredentials.read(SecretBytes(content))


def outcome(content: bytes) -> HadoopCredentials | InvalidInput:
    """Return the value or the refusal; any other exception fails the test."""
    try:
        return read(content)
    except InvalidInput as refusal:
        return refusal


def private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def shown(error: BaseException) -> list[str]:
    """Return all that a traceback with local variables can show below a test, including causes and contexts."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    lines = [str(error), repr(error.args)]
    for frame in trace.stack:
        lines.extend((frame.locals or {}).values() if "/tests/" not in frame.filename else ())
    for cause in (error.__cause__, error.__context__):
        lines.extend(shown(cause) if cause else ())
    return lines


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ints = st.integers(-(1 << 31), (1 << 31) - 1)
moments = st.datetimes(timezones=st.just(UTC), min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
delegations = st.builds(DelegationToken, names, names, names, moments, moments, ints, ints)
numbers = st.integers(0, (1 << 31) - 1)
attempts = st.builds(
    AttemptToken, st.builds("appattempt_{}_{:04d}_{:06d}".format, st.integers(0, (1 << 62)), numbers, numbers), ints
)
identifiers: st.SearchStrategy[tuple[str, Identifier]] = st.one_of(
    st.tuples(st.sampled_from((*WRITABLE_KINDS, *YARN_KINDS)), delegations),
    st.tuples(st.just("YARN_AM_RM_TOKEN"), attempts),
    st.tuples(st.just("KAFKA_DELEGATION_TOKEN"), st.builds(KafkaToken, names)),
)


@st.composite
def tokens(draw: st.DrawFn) -> tuple[Written, Identifier]:
    kind, identifier = draw(identifiers)
    password = draw(st.binary(max_size=200))
    return Written(draw(names), kind, draw(names), identifier_bytes(kind, identifier), password), identifier
