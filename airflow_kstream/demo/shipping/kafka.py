"""Kafka as a principal with a keytab: no ambient ticket cache, several principals in one process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gssapi
from gssapi.raw import GSSError
from kafka import KafkaConsumer, KafkaProducer
from kafka import errors as kafka_errors
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from airflow_kstream.model.errors import Conflict, CredentialError, Denied, KstreamError, Unavailable

SERVICE = "kafka"

# The first match counts; every other error of the client means that the brokers' answer is unknown.
_MEANINGS: tuple[tuple[type[Exception], type[KstreamError], str], ...] = (
    (kafka_errors.ProducerFencedError, Conflict, "another producer took over this transactional id"),
    (kafka_errors.AuthorizationError, Denied, "the brokers' rules don't allow it"),
    (kafka_errors.SaslAuthenticationFailedError, Denied, "the brokers refused the login"),
    (kafka_errors.KafkaError, Unavailable, "the brokers gave no answer that proves anything"),
)


@dataclass(frozen=True)
class KafkaLogin:
    """The brokers (`host:port,...`) and the principal. Each connection logs in from the keytab again."""

    bootstrap_servers: str
    principal: str
    keytab: Path
    security_protocol: str = "SASL_PLAINTEXT"

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for kafka-python's producer, consumer and admin client."""
        return {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "security_protocol": self.security_protocol,
            "sasl_mechanism": "GSSAPI",
            "sasl_kerberos_service_name": SERVICE,
            # The only option that kafka-python passes to a mechanism unchanged; KeytabGssapi reads it.
            "sasl_kerberos_name": self,
        }

    def credentials(self) -> gssapi.Credentials:
        """Return credentials that get a ticket on first use, in a new cache, so that no old ticket is reused."""
        store: dict[bytes | str, bytes | str] = {
            "client_keytab": f"FILE:{self.keytab}",
            "ccache": f"MEMORY:{uuid.uuid4().hex}",
        }
        name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(name=name, usage="initiate", store=store)

    def check(self) -> None:
        """Get a ticket. Raises CredentialError: when that fails; kafka-python would hide it until its timeout."""
        with kafka_trouble("log in from the keytab", self):
            _ = self.credentials().lifetime


class KeytabGssapi(SaslMechanismGSSAPI):  # type: ignore[misc]
    """GSSAPI for kafka-python with explicit credentials. Clients without a KafkaLogin keep the ambient ones."""

    def __init__(self, **config: Any) -> None:
        login = config.get("sasl_kerberos_name")
        if not isinstance(login, KafkaLogin):
            super().__init__(**config)
            return
        self._is_done = False
        self._is_authenticated = False
        self.auth_id = f"{SERVICE}@{config['host']}"
        broker = gssapi.Name(self.auth_id, gssapi.NameType.hostbased_service)
        self.gssapi_name = broker.canonicalize(gssapi.MechType.kerberos)
        self._client_ctx = gssapi.SecurityContext(name=self.gssapi_name, usage="initiate", creds=login.credentials())
        self._next_token = self._client_ctx.step(None)


register_sasl_mechanism("GSSAPI", KeytabGssapi, overwrite=True)


class TransactionalProducer(KafkaProducer):  # type: ignore[misc]
    """A kafka-python producer that gives up. The original can lose a request when a connection breaks (seen in 3.0.12):
    then `commit_transaction` never returns, and `close` waits for data that can't be sent. After any error, abandon it.
    """

    def __init__(self, transactional_id: str, login: KafkaLogin) -> None:
        milliseconds = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 20_000, "max_block_ms": 30_000}
        super().__init__(transactional_id=transactional_id, linger_ms=5, **milliseconds, **login.options())

    def commit_within(self, seconds: float) -> None:
        """Commit. Raises KafkaTimeoutError: when the outcome is unknown by then; only a successor can find it out."""
        result = self._transaction_manager.begin_commit()
        self._sender.wakeup()
        if not result.wait(timeout_ms=seconds * 1000):
            raise kafka_errors.KafkaTimeoutError(f"no answer to the commit within {seconds:.0f} s")

    def abandon(self) -> None:
        """Stop at once, without sending or waiting. A successor or the brokers' timeout ends an open transaction."""
        self._closed = True
        self._unregister_cleanup()
        self._sender.force_close()


@contextmanager
def kafka_trouble(tried: str, login: KafkaLogin) -> Iterator[None]:
    """Map errors of kafka-python and GSSAPI to this package's."""
    try:
        yield
    except GSSError as error:
        reason = "; ".join(error.get_all_statuses(error.min_code, False)) or str(error)
        raise CredentialError(reason, tried=f"{tried} {login.keytab}", principal=login.principal) from error
    except kafka_errors.KafkaError as error:
        meaning, words = next((kind, words) for foreign, kind, words in _MEANINGS if isinstance(error, foreign))
        context = {"tried": tried, "server": login.bootstrap_servers, "principal": login.principal}
        raise meaning(f"{words} ({str(error) or type(error).__name__})", **context) from error


@contextmanager
def committed_reader(login: KafkaLogin) -> Iterator[KafkaConsumer]:
    """Return a consumer of committed records only, without a group; it does not create missing topics."""
    safely = {"isolation_level": "read_committed", "enable_auto_commit": False, "allow_auto_create_topics": False}
    consumer = KafkaConsumer(**safely, **login.options())
    try:
        yield consumer
    finally:
        consumer.close()
