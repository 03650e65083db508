"""Kafka as a principal with a keytab or a ticket cache: no ambient cache, several principals in one process.

It imports kafka-python at once: import this module inside functions.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from socket import SOCK_STREAM, getaddrinfo, socket
from typing import Any

import gssapi
from gssapi.raw import GSSError
from kafka import KafkaAdminClient
from kafka import errors as kafka_errors
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from airflow_kstream.clients.kerberos.krb5_errors import words_of
from airflow_kstream.model.errors import CredentialError, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

SERVICE = "kafka"
# For each broker, and for all of a list.
_CONNECT_SECONDS, _SEARCH_SECONDS = 5.0, 10.0

# The first match counts; every other error of the client means that the brokers' answer is unknown.
_MEANINGS: tuple[tuple[type[Exception], type[KstreamError], str], ...] = (
    (kafka_errors.AuthorizationError, Denied, "the brokers' rules don't allow it"),
    (kafka_errors.SaslAuthenticationFailedError, Denied, "the brokers refused the login"),
    (kafka_errors.UnknownTopicOrPartitionError, NotFound, "the brokers know no such topic or partition"),
    (kafka_errors.KafkaError, Unavailable, "the brokers gave no answer that proves anything"),
)


@dataclass(frozen=True)
class KafkaLogin:
    """The brokers (`host:port,...`) and the principal. Each connection logs in again. `ca` is a private authority's
    file."""

    bootstrap_servers: str
    identity: Identity
    security_protocol: str = "SASL_PLAINTEXT"
    service: str = SERVICE
    ca: str | None = None

    @property
    def principal(self) -> str:
        return self.identity.principal

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for kafka-python's producer, consumer and admin client."""
        brokers = {"bootstrap_servers": self.bootstrap_servers.split(","), "security_protocol": self.security_protocol}
        if self.ca and self.security_protocol.endswith("SSL"):
            brokers["ssl_cafile"] = self.ca
        if not self.security_protocol.startswith("SASL"):
            return brokers
        return {
            **brokers,
            "sasl_mechanism": "GSSAPI",
            "sasl_kerberos_service_name": self.service,
            # The only option that kafka-python passes to a mechanism unchanged; KeytabGssapi reads it.
            "sasl_kerberos_name": self,
        }

    def credentials(self) -> gssapi.Credentials:
        """Return credentials that get a ticket on first use, in a new cache, so that no old ticket is reused; those of
        an identity without a keytab are its ticket cache's."""
        store: dict[bytes | str, bytes | str] = {"ccache": self.identity.ticket_cache or ""}
        if self.identity.keytab:
            store = {"client_keytab": f"FILE:{self.identity.keytab}", "ccache": f"MEMORY:{uuid.uuid4().hex}"}
        name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(name=name, usage="initiate", store=store)

    def check(self, within: float = _SEARCH_SECONDS) -> None:
        """Get a ticket, and connect to one of the brokers; `within` is the time in seconds for all of them together.

        Raises CredentialError, Unavailable: when that fails. kafka-python would hide the one until its timeout, and
        leave a socket open for each try of the other.
        """
        self._require_broker(within)
        if self.security_protocol.startswith("SASL"):
            with kafka_trouble("log in to Kafka", self):
                _ = self.credentials().lifetime

    def _require_broker(self, within: float) -> None:
        why, until = "", time.monotonic() + within
        brokers = self.bootstrap_servers.split(",")
        for before, broker in enumerate(brokers):
            # An equal share of the time that is left: dark brokers don't use up that of a living one behind them.
            share = (until - time.monotonic()) / (len(brokers) - before)
            if share <= 0:
                break
            try:
                _reach(broker, min(share, _CONNECT_SECONDS))
                return
            except (OSError, ValueError, OverflowError) as error:
                why = f"{broker}: {error}"
        tried, principal = "connect to Kafka", self.principal
        raise Unavailable(why, tried=tried, server=self.bootstrap_servers, principal=principal)


def _reach(broker: str, within: float) -> None:
    """Connect to one of a broker's addresses, within this time in seconds for all of them once its name is resolved.

    Raises OSError: when none answers. Raises ValueError (including UnicodeError), OverflowError: when it is no
    `host:port`, as an earlier release may have let pass.
    """
    host, _, port = broker.rpartition(":")
    refused = OSError()
    addresses = getaddrinfo(host.strip("[]"), int(port), type=SOCK_STREAM)
    for family, kind, protocol, _, address in addresses:
        try:
            with socket(family, kind, protocol) as connection:
                connection.settimeout(within / len(addresses))
                connection.connect(address)
                return
        except OSError as error:
            refused = error
    raise refused


class KeytabGssapi(SaslMechanismGSSAPI):  # type: ignore[misc]
    """GSSAPI for kafka-python with explicit credentials. Clients without a KafkaLogin keep the ambient ones."""

    def __init__(self, **config: Any) -> None:
        login = config.get("sasl_kerberos_name")
        if not isinstance(login, KafkaLogin):
            super().__init__(**config)
            return
        self._is_done = False
        self._is_authenticated = False
        self.auth_id = f"{login.service}@{config['host']}"
        broker = gssapi.Name(self.auth_id, gssapi.NameType.hostbased_service)
        self.gssapi_name = broker.canonicalize(gssapi.MechType.kerberos)
        self._client_ctx = gssapi.SecurityContext(name=self.gssapi_name, usage="initiate", creds=login.credentials())
        self._next_token = self._client_ctx.step(None)


register_sasl_mechanism("GSSAPI", KeytabGssapi, overwrite=True)


@contextmanager
def kafka_trouble(tried: str, login: KafkaLogin) -> Iterator[None]:
    """Map errors of kafka-python and GSSAPI to this package's."""
    context = {"tried": tried, "server": login.bootstrap_servers, "principal": login.principal}
    try:
        yield
    except GSSError as error:
        source = login.identity.keytab or login.identity.ticket_cache
        raise CredentialError(f"{words_of(error)} ({source})", **context) from error
    except kafka_errors.KafkaError as error:
        cause = _first_failure(error)
        meaning, words = next((kind, words) for foreign, kind, words in _MEANINGS if isinstance(cause, foreign))
        raise meaning(f"{words} ({str(error) or type(error).__name__})", **context) from error


def _first_failure(error: kafka_errors.KafkaError) -> kafka_errors.KafkaError:
    """Return the error of an earlier request that a producer names when it refuses every later one."""
    return next((named for named in error.args if isinstance(named, kafka_errors.KafkaError)), error)


@contextmanager
def asking(login: KafkaLogin, patience_ms: int) -> Iterator[KafkaAdminClient]:
    """Return a client that asks and creates nothing.

    A consumer of kafka-python 3.0.12 lets the brokers create a topic that it asks for: its `allow_auto_create_topics`
    does not reach the request.
    """
    admin = KafkaAdminClient(request_timeout_ms=patience_ms, bootstrap_timeout_ms=patience_ms, **login.options())
    try:
        yield admin
    finally:
        admin.close()
