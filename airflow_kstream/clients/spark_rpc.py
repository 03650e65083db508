"""Spark's own RPC with a driver that runs: the tokens that it hands to executors, and fresh ones for it.

Nothing in the job is prepared for it. It is an internal protocol: this side needs the jars of the same Spark version,
the network has to let it reach the driver's port, and with `spark.authenticate` nobody outside knows the secret. A
driver without it takes these messages from anybody who can reach that port.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.streams.installations import SparkInstallation

_MESSAGES = "CoarseGrainedClusterMessages$"
# The endpoint that takes new tokens, and the one that tells those of new executors (CoarseGrainedSchedulerBackend's and
# YarnSchedulerBackend's): asked at the other one, a driver never answers.
_TAKES, _TELLS = "CoarseGrainedScheduler", "YarnScheduler"
_ANSWERS_WITHIN = "30s"
# What Spark's own launcher opens to it from Java 17 on (JavaModuleOptions).
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action"),
)
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+IgnoreUnrecognizedVMOptions")
# How refusals begin to show in the words of Spark's exceptions.
_REFUSALS: Mapping[str, tuple[type[KstreamError], str]] = {
    "InvalidClassException": (InvalidInput, "it runs another version of Spark: name its client by --spark-submit"),
    "SaslMessage": (Denied, "it demands authentication (spark.authenticate), and nobody outside knows its secret"),
    "SaslRpcHandler": (Denied, "it demands authentication (spark.authenticate), and nobody outside knows its secret"),
}


class DriverRpc:
    """A connection to one driver, made by `driver_rpc`."""

    def __init__(self, jvm: Any, environment: Any, host: str, port: int) -> None:
        self._jvm, self._environment = jvm, environment
        self._messages = jvm.org.apache.spark.scheduler.cluster
        self._address = jvm.org.apache.spark.rpc.RpcAddress(host, port)
        self._server = f"{host}:{port}"

    def tokens(self) -> SecretBytes:
        """Return the credentials that a new executor would get."""
        question = getattr(self._messages, f"{_MESSAGES}RetrieveDelegationTokens$")

        def ask() -> SecretBytes:
            tag = self._jvm.scala.reflect.ClassTag.Any()
            answer = self._endpoint(_TELLS).askSync(getattr(question, "MODULE$"), tag)
            return SecretBytes(bytes(answer or b""))

        answer: SecretBytes = self._translated("ask for the tokens of its executors", ask)
        return answer

    def send(self, content: SecretBytes) -> None:
        """Send the content of a credentials file, which the driver and its executors use from then on.

        Nothing answers it: `tokens` shows whether it has arrived.
        """
        update = getattr(self._messages, f"{_MESSAGES}UpdateDelegationTokens")
        self._translated("send fresh tokens", lambda: self._endpoint(_TAKES).send(update(bytearray(content.reveal()))))

    def _endpoint(self, name: str) -> Any:
        return self._environment.setupEndpointRef(self._address, name)

    def _translated(self, tried: str, call: Any) -> Any:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:
            return call()
        except Py4JError as error:
            told = _error(error, tried, self._server)
        # Without the frames below, whose variables hold tokens.
        raise told


@contextmanager
def driver_rpc(client: SparkInstallation, host: str, port: int) -> Iterator[DriverRpc]:
    """Start a JVM with the jars of a Spark client, and yield a connection to the driver; it takes some seconds.

    Raises InvalidInput: when this host has no such jars, no Java or no py4j.
    """
    if not client.home:
        raise InvalidInput(f"{client.binary} does not tell where Spark's jars are; name Spark's own bin/spark-submit")
    _provide_py4j(client.home)
    from py4j.java_gateway import (  # type: ignore[import-untyped]
        GatewayParameters,
        JavaGateway,
        launch_gateway,
    )

    py4j_jar = next(iter(sorted(Path(client.jars).glob("py4j-*.jar"))), None)
    if py4j_jar is None:
        raise InvalidInput(f"{client.jars} has no jars of Spark")
    # Hadoop's jars may lie outside Spark's folder; conf folders are for those who speak to a cluster.
    jars = ":".join(entry for entry in client.class_path if entry.endswith(("/*", ".jar")))
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    try:
        gateway_port, secret = launch_gateway(
            jarpath=str(py4j_jar), classpath=jars, javaopts=[*_JAVA, *opened], die_on_exit=True, enable_auth=True
        )
    except (OSError, ValueError) as error:
        raise InvalidInput(f"no JVM can be started on this host: {error}", tried="start a JVM") from None
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port, auth_token=secret, auto_convert=True))
    try:
        yield DriverRpc(gateway.jvm, _environment(gateway.jvm), host, port)
    finally:
        gateway.shutdown()


def _provide_py4j(home: str) -> None:
    """Make py4j importable: installed, or what this Spark brings along. Raises InvalidInput: when neither is there."""
    if find_spec("py4j"):
        return
    zipped = sorted(Path(home, "python", "lib").glob("py4j-*-src.zip"))
    if not zipped:
        raise InvalidInput(
            f"this Python has no py4j, and {home}/python/lib no py4j-*-src.zip: pip install py4j, or Spark's client "
            "with it, pip install 'airflow-kstream[spark]'",
            tried="speak to a driver",
        )
    sys.path.append(str(zipped[-1]))


def _environment(jvm: Any) -> Any:
    conf = jvm.org.apache.spark.SparkConf(False)
    conf.set("spark.rpc.askTimeout", _ANSWERS_WITHIN)
    managers = jvm.org.apache.spark.SecurityManager
    default = "$lessinit$greater$default$"
    manager = managers(conf, getattr(managers, f"{default}2")(), getattr(managers, f"{default}3")())
    return jvm.org.apache.spark.rpc.RpcEnv.create("kstream", "127.0.0.1", 0, conf, manager, True)


def _error(error: Exception, tried: str, server: str) -> KstreamError:
    words = str(error)
    for sign, (kind, message) in _REFUSALS.items():
        if sign in words:
            return kind(message, tried=tried, server=server)
    first = next((line for line in words.splitlines() if "Exception" in line), "the driver does not answer")
    return Unavailable(first.strip(), tried=tried, server=server)
