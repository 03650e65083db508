"""The Kafka broker: a single node that is its own controller, with GSSAPI on every listener."""

from __future__ import annotations

import base64
import socket
import struct
import subprocess
import uuid
from pathlib import Path

from airflow_kstream.minicluster import java
from airflow_kstream.minicluster.site import Site
from airflow_kstream.model.errors import MiniclusterError

_API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
_TIMEOUT_SECONDS = 5
_SINGLE = (
    "offsets.topic.replication.factor",
    "offsets.topic.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.num.partitions",
)


def write_configuration(site: Site) -> None:
    """Write the broker's server.properties."""
    lines = [f"{key}={value}" for key, value in _properties(site).items()]
    _file(site).write_text("\n".join([*lines, ""]))


def format_storage(site: Site) -> None:
    """Give the broker's empty folder the identity of a cluster. Raises MiniclusterError: when Kafka refuses."""
    arguments = ["kafka.tools.StorageTool", "format", "-t", cluster_id(uuid.uuid4()), "-c", str(_file(site))]
    done = subprocess.run(
        [*java.kafka(site, "kafka-format"), *arguments, "--ignore-formatted"],
        env=java.environment(site, site.folders.daemon_conf),
        cwd=site.folders.run,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise MiniclusterError(f"kafka: its folder could not be formatted: {done.stderr.strip()[-500:]}")


def cluster_id(identity: uuid.UUID) -> str:
    """Return Kafka's cluster id: 16 bytes in URL-safe base64. Kafka's tool would take a leading "-" for an option."""
    return base64.urlsafe_b64encode(bytes([identity.bytes[0] & 0x7F]) + identity.bytes[1:]).decode().rstrip("=")


def command(site: Site, name: str) -> list[str]:
    return [*java.kafka(site, name), "-Xmx256m", "kafka.Kafka", str(_file(site))]


def ask(site: Site) -> str:
    """Ask the broker which requests it knows, the one request that needs no login."""
    with socket.create_connection(("127.0.0.1", site.ports["kafka"]), _TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
        with connection.makefile("rb") as stream:
            head = stream.read(14)
    if len(head) < 14:
        raise ConnectionError("the broker closed the connection")
    _, _, error, apis = struct.unpack(">iihi", head)
    if error:
        raise ConnectionError(f"the broker answered with error {error}")
    return f"knows {apis} kinds of request"


def _file(site: Site) -> Path:
    return site.folders.daemon_conf / "kafka.properties"


def _properties(site: Site) -> dict[str, str | int | Path]:
    broker, controller = site.address("kafka"), site.address("kafka-controller")
    login = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{site.folders.service_keytab}" principal="{site.kdc.principal("kafka/localhost")}";'
    )
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"SASL_PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"SASL_PLAINTEXT://{broker}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": login,
        "listener.name.controller.gssapi.sasl.jaas.config": login,
        "log.dirs": site.folders.data / "kafka",
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 2_097_152,
        **dict.fromkeys(_SINGLE, 1),
    }
