"""Ships the lines of growing files into a Kafka topic, each at least once.

A record: the line's bytes without its newline; key: `FILE:OFFSET`, the file's name and the offset of the line's first
byte. The key names the line, so a reader of the topic can tell one that came again: a shipper that is started again
begins with the first line, and one that got no answer sends what it sent last once more.

A last line without newline waits until it is whole. A rotation is not followed: comparing the topic with the files
shows the lines that are missing then.

    python -m airflow_kstream.demo.shipper --settings FILE.json

SIGTERM ships what is complete, prints for each file how many of its bytes are in the topic as JSON, and exits 0.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pydantic import ConfigDict, PositiveFloat

from airflow_kstream.clients.kafka import KafkaLogin, kafka_trouble
from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.fields import Line, Principal, Word
from airflow_kstream.model.kerberos.identity import Identity

# The largest block of a file, and so the longest line. Half of a Kafka broker's usual limit of 1 MiB.
BLOCK_BYTES = 512 * 1024
_PATIENCE_SECONDS = 30.0
_MILLISECONDS = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 20_000, "max_block_ms": 30_000}

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ShipperSettings:
    """The files to ship (`files`: name → path), brokers, topic and login."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    bootstrap_servers: Line
    topic: Word
    files: Mapping[str, Path]
    principal: Principal
    keytab: Path
    poll_seconds: PositiveFloat = 0.2

    @property
    def login(self) -> KafkaLogin:
        return KafkaLogin(self.bootstrap_servers, Identity(self.principal, keytab=str(self.keytab)))


class LogShipper:
    """A shipper that connects on first use and after every error. Use it from one thread only.

    `ends` tells for each file the byte after the last line that the brokers confirmed to this shipper.
    """

    def __init__(self, settings: ShipperSettings) -> None:
        self._settings = settings
        self._producer: KafkaProducer | None = None
        self.ends = dict.fromkeys(settings.files, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def run(self, stop: threading.Event) -> None:
        """Ship until `stop` is set, then once more all complete lines. It waits for unreachable brokers until then.

        Raises InvalidInput: when a line is too long. CredentialError and Denied pass through.
        """
        while not stop.wait(self._settings.poll_seconds):
            try:
                self.ship_available()
            except Unavailable as error:
                log.warning("%s", error)
        self.ship_available()

    def ship_available(self) -> None:
        """Ship every line that is complete now. After an error those without an answer are sent again."""
        with self._connected() as producer:
            for name in self.ends:
                while self._ship_block(producer, name):
                    pass

    def close(self) -> None:
        """Disconnect. A producer that lost a request (seen in kafka-python 3.0.12) is left to its own timeouts."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaError):
                producer.close(timeout=1)

    @contextmanager
    def _connected(self) -> Iterator[KafkaProducer]:
        try:
            with kafka_trouble("ship lines", self._settings.login):
                yield self._producer or self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> KafkaProducer:
        login = self._settings.login
        login.check()
        _create_topic(self._settings)
        self._producer = KafkaProducer(linger_ms=5, **_MILLISECONDS, **login.options())
        log.info("shipping into %s from these bytes on: %s", self._settings.topic, self.ends)
        return self._producer

    def _ship_block(self, producer: KafkaProducer, name: str) -> bool:
        """Ship the next lines of a file; return False if none is complete."""
        begin = self.ends[name]
        data = complete_lines(self._settings.files[name], begin)
        sent = [
            producer.send(self._settings.topic, content, f"{name}:{offset}".encode())
            for offset, content in lines_of(data, begin)
        ]
        producer.flush(timeout=_PATIENCE_SECONDS)
        for future in sent:
            # A flush does not notice a record that failed.
            future.get(timeout=0)
        self.ends[name] = begin + len(data)
        return bool(data)


def complete_lines(path: Path, begin: int) -> bytes:
    """Return the complete lines after so many bytes, at most BLOCK_BYTES of them; nothing of a file that is not there.

    Raises InvalidInput: when a line is longer.
    """
    try:
        with path.open("rb") as stream:
            stream.seek(begin)
            data = stream.read(BLOCK_BYTES)
    except FileNotFoundError:
        return b""
    length = data.rfind(b"\n") + 1
    if not length and len(data) == BLOCK_BYTES:
        where = f"{path} at byte {begin}"
        raise InvalidInput(f"{where}: a line of more than {BLOCK_BYTES} bytes, the longest that is taken")
    return data[:length]


def lines_of(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of complete ones, each with the offset of its first byte; `offset` is the first one's."""
    for content in data.split(b"\n")[:-1]:
        yield offset, content
        offset += len(content) + 1


def _create_topic(settings: ShipperSettings) -> None:
    """Create the topic unless it is there; -1 leaves the replication to the brokers' default."""
    admin = KafkaAdminClient(**settings.login.options())
    try:
        with suppress(TopicAlreadyExistsError):
            admin.create_topics(
                {settings.topic: {"num_partitions": 1, "replication_factor": -1}}, wait_for_metadata=True
            )
    finally:
        admin.close()


def main() -> None:
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description="Ship the lines of growing files into a Kafka topic.")
    parser.add_argument("--settings", type=Path, required=True, help="JSON file with the fields of ShipperSettings")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = read(ShipperSettings, json.loads(parser.parse_args().settings.read_text()))
        with LogShipper(settings) as shipper:
            shipper.run(stop)
            print(json.dumps(shipper.ends))
    except KstreamError as error:
        sys.exit(f"shipper: {error}")


if __name__ == "__main__":
    main()
