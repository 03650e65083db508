"""Credentials files that Hadoop's own programs wrote, read to the last field."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.clients.local import credential_files
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials, TokenFormat
from airflow_kstream.model.kerberos.tokens import AttemptToken, DelegationToken, KafkaToken, Opaque, Token
from tests.live.token_makers import DTUTIL, JOB_KEY, fetch, hadoop_classes
from tests.simulated.hadoop_writers import WRITABLE_KINDS, YARN_KINDS, Written, identifier_bytes, millis
from tests.simulated.token_cases import FORMATS, WRITERS


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A token of every kind, and two secret keys, in a file of either format."""
    folder = tmp_path_factory.mktemp("written")
    hadoop_classes("write", str(folder))
    return folder


@FORMATS
def test_every_kind_is_read_as_hadoops_own_classes_read_it(written: Path, form: TokenFormat) -> None:
    credentials = read_credentials(written / form).credentials
    assert credentials.format is form
    assert as_hadoop_tells(credentials) == hadoop_classes("tell", str(written / form))
    readable = {token.kind for token in credentials.tokens if not isinstance(token.identifier, Opaque)}
    assert readable == {*WRITABLE_KINDS, *YARN_KINDS, "YARN_AM_RM_TOKEN", "KAFKA_DELEGATION_TOKEN"}


@FORMATS
def test_what_was_read_makes_the_same_bytes_again(written: Path, form: TokenFormat) -> None:
    assert written_again(written / form) == (written / form).read_bytes()


def test_what_hdfs_fetchdt_writes_is_read_as_dtutil_prints_it(minicluster: Minicluster, tmp_path: Path) -> None:
    """`dtutil append` rewrites a copy in the other format. What `dtutil print` says is a secret: never show it."""
    file = fetch(minicluster, tmp_path / "java")
    other = write_private(tmp_path / "protobuf", file.read_bytes())
    (token,) = read_credentials(file).credentials.tokens
    identifier = token.identifier
    assert isinstance(identifier, DelegationToken)
    done = minicluster.hadoop_main(DTUTIL, "append", "-format", "protobuf", str(other), as_="streamer")
    assert done.returncode == 0, done.stderr
    assert read_credentials(other).credentials == HadoopCredentials(TokenFormat.PROTOBUF, (token,))
    assert {written.name: written_again(written) == written.read_bytes() for written in (file, other)} == {
        "java": True,
        "protobuf": True,
    }
    kind, service, renewer, date, secret = printed(minicluster, other)
    assert (kind, service, renewer) == (token.kind, token.service, identifier.renewer)
    assert date == f"{identifier.max_date.astimezone():%-m/%-d/%y, %-I:%M %p}"
    # Compared without pytest, which would show both.
    assert (secret == credential_files.url_string(other, token).reveal().decode()) is True


def printed(minicluster: Minicluster, file: Path) -> tuple[str, ...]:
    done = minicluster.hadoop_main(DTUTIL, "print", str(file), as_="streamer")
    kind, service, renewer, *date, secret = done.stdout.strip().splitlines()[-1].split()
    return kind, service, renewer, " ".join(date), secret


def as_hadoop_tells(credentials: HadoopCredentials) -> list[list[str]]:
    keys = [["secret key", key.alias, str(key.length)] for key in credentials.secret_keys]
    return keys + [[token.alias, token.kind, token.service, *cells(token)] for token in credentials.tokens]


def cells(token: Token) -> list[str]:
    match token.identifier:
        case DelegationToken() as read:
            numbers = (millis(read.issued), millis(read.max_date), read.sequence_number, read.master_key_id)
            return [read.owner, read.renewer, read.real_user, *map(str, numbers)]
        case AttemptToken() as read:
            return [read.attempt, str(read.master_key_id)]
        case KafkaToken() as read:
            return [str(len(read.token_id))]
    return [str(token.identifier.byte_count)]


def written_again(file: Path) -> bytes:
    """Return a file's bytes, made of nothing but the fields that were read, the passwords and the secret keys."""
    content = SecretBytes(file.read_bytes())
    credentials = HadoopCredentials.read(content)
    secrets = [(key.alias, JOB_KEY[: key.length]) for key in credentials.secret_keys]
    return WRITERS[credentials.format]([token_again(content, token) for token in credentials.tokens], secrets)


def token_again(content: SecretBytes, token: Token) -> Written:
    read, password = token.identifier, content.reveal()[token.password_place]
    raw = content.reveal()[token.identifier_place] if isinstance(read, Opaque) else identifier_bytes(token.kind, read)
    return Written(token.alias, token.kind, token.service, raw, password)
