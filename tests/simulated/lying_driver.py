"""A driver whose author chose what it says of its tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.tokens import DelegationToken
from tests.simulated.hadoop_writers import java_file, writable
from tests.simulated.token_cases import HDFS


class LyingDriver:
    """Says over Spark's RPC that it holds a token of this owner, by way of this real user; keeps what it is sent."""

    def __init__(self, owner: str, real_user: str, service: str = HDFS.service) -> None:
        now = datetime.now(UTC)
        told = DelegationToken(owner, "mallory", real_user, now - timedelta(hours=1), now + timedelta(minutes=5), 1, 1)
        self._file = java_file([replace(HDFS, alias=service, service=service, identifier=writable(told))])
        self.sent: list[SecretBytes] = []

    def tokens(self) -> SecretBytes:
        return SecretBytes(self._file)

    def send(self, content: SecretBytes) -> None:
        self.sent.append(content)
