"""Ships the lines of growing files into a Kafka topic, each exactly once, regardless of what is killed in between.

How: one Kafka transaction holds the lines and the positions after them. Positions are kept in a small compacted topic
beside the data (as Kafka Connect's exactly-once sources do), so they neither expire nor run ahead of the data. At the
start the transactional id fences a predecessor that is still alive and settles the transaction that it left; only then
are the positions read. Consumers have to read with `isolation.level=read_committed`.

A record: the line's bytes without its newline; key: the file's name; headers `file` and `byte_offset`, the offset
of the line's first byte. The lines of one file keep their order. A last line without newline waits until it is whole.

It does not follow a rotation. It refuses a file that was truncated, or that begins with other bytes than before,
because it could no longer tell which of its lines were shipped.

    python -m airflow_kstream.demo.shipping.shipper --settings FILE.json

SIGTERM ships what is complete, prints the final positions as JSON and exits 0.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import TopicAlreadyExistsError
from pydantic import ConfigDict, PositiveFloat

from airflow_kstream.clients.kafka import KafkaLogin, committed_reader, kafka_trouble
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.demo.shipping.kafka import TransactionalProducer
from airflow_kstream.demo.shipping.log_lines import Block, Position, next_block
from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.fields import Count, Line, Principal, Word
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.yaml_text import read_mapping

# Small segments, so that the compaction keeps a topic that is read whole at each start short.
_POSITIONS_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
_PATIENCE_SECONDS = 30.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ShipperSettings:
    """The files to ship (`files`: name → path), brokers, topic and login. `partitions` is used to create the topic."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    bootstrap_servers: Line
    topic: Word
    files: Mapping[str, Path]
    principal: Principal
    keytab: Path
    partitions: Count = 1
    poll_seconds: PositiveFloat = 0.2
    security_protocol: str = "SASL_PLAINTEXT"

    @classmethod
    def read(cls, path: Path) -> ShipperSettings:
        """Read the settings from a JSON file. Raises InvalidInput: when fields are wrong, with their names."""
        text = read_text(path)
        try:
            # JSON is YAML.
            return read(ShipperSettings, read_mapping(text))
        except InvalidInput as error:
            raise InvalidInput(error.message, tried=f"read the shipper's settings from {path}") from None

    @property
    def login(self) -> KafkaLogin:
        return KafkaLogin(
            self.bootstrap_servers, Identity(self.principal, keytab=str(self.keytab)), self.security_protocol
        )

    @property
    def positions_topic(self) -> str:
        return f"{self.topic}-positions"

    @property
    def transactional_id(self) -> str:
        """Return the topic's transactional id: a second shipper of the topic ends the first."""
        return f"kstream-shipper-{self.topic}"


@dataclass(frozen=True)
class Shipped:
    """The amount that was committed; `size` in bytes, without newlines."""

    lines: int = 0
    size: int = 0

    def __add__(self, other: Shipped) -> Shipped:
        return Shipped(self.lines + other.lines, self.size + other.size)


class LogShipper:
    """A shipper that connects on first use and after every error. Use it from one thread only."""

    def __init__(self, settings: ShipperSettings) -> None:
        self._settings = settings
        self._producer: TransactionalProducer | None = None
        self._positions: dict[str, Position] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def run(self, stop: threading.Event) -> None:
        """Ship until `stop` is set, then once more all complete lines. It waits for unreachable brokers until then.

        Raises Conflict: when another shipper of this topic took over. Raises InvalidInput: when a file can't be
        followed. CredentialError and Denied pass through.
        """
        while not stop.wait(self._settings.poll_seconds):
            try:
                self.ship_available()
            except Unavailable as error:
                log.warning("%s", error)
        self.ship_available()

    def ship_available(self) -> Shipped:
        """Commit every line that is complete now, and return the amount.

        After an error it is unknown whether the last transaction was committed; the next call finds out.
        """
        total = Shipped()
        with self._connected("ship lines") as producer:
            while blocks := self._next_blocks():
                self._commit(producer, blocks)
                total = sum(map(_shipped, blocks), total)
        return total

    def positions(self) -> dict[str, int]:
        """Return, for each file of the settings, how many of its bytes are in the topic."""
        with self._connected("read the positions"):
            return {name: self._position(name).end for name in self._settings.files}

    def close(self) -> None:
        """Disconnect; the next shipper ships everything that was not committed."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.abandon()

    @contextmanager
    def _connected(self, tried: str) -> Iterator[TransactionalProducer]:
        try:
            with kafka_trouble(tried, self._settings.login):
                yield self._producer or self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> TransactionalProducer:
        settings, login = self._settings, self._settings.login
        login.check()
        _create_topics(settings)
        self._producer = TransactionalProducer(settings.transactional_id, login)
        self._producer.init_transactions()
        self._positions = _read_positions(settings)
        sizes = {name: self._position(name).end for name in settings.files}
        log.info("shipping into %s, which holds this many bytes: %s", settings.topic, sizes)
        return self._producer

    def _position(self, name: str) -> Position:
        return self._positions.get(name, Position())

    def _next_blocks(self) -> list[Block]:
        files = self._settings.files.items()
        blocks = (next_block(name, path, self._position(name)) for name, path in files)
        return [block for block in blocks if block is not None]

    def _commit(self, producer: TransactionalProducer, blocks: Sequence[Block]) -> None:
        producer.begin_transaction()
        sent = [future for block in blocks for future in self._send(producer, block)]
        producer.flush(timeout=_PATIENCE_SECONDS)
        for future in sent:
            # The commit itself would not notice a record that failed.
            future.get(timeout=0)
        producer.commit_within(_PATIENCE_SECONDS)
        self._positions.update({block.name: block.position for block in blocks})

    def _send(self, producer: TransactionalProducer, block: Block) -> Iterator[Any]:
        settings, name = self._settings, block.name.encode()
        for line in block.lines:
            headers = [("file", name), ("byte_offset", b"%d" % line.offset)]
            yield producer.send(settings.topic, line.content, name, headers)
        position = json.dumps(asdict(block.position)).encode()
        yield producer.send(settings.positions_topic, position, name, partition=0)


def _shipped(block: Block) -> Shipped:
    return Shipped(len(block.lines), sum(len(line.content) for line in block.lines))


def _create_topics(settings: ShipperSettings) -> None:
    """Create the topics; -1 leaves the replication to the brokers' default."""
    wanted = {
        settings.topic: {"num_partitions": settings.partitions, "replication_factor": -1},
        settings.positions_topic: {"num_partitions": 1, "replication_factor": -1, "configs": _POSITIONS_CONFIG},
    }
    admin = KafkaAdminClient(**settings.login.options())
    try:
        for missing in wanted.keys() - set(admin.list_topics()):
            with suppress(TopicAlreadyExistsError):
                admin.create_topics({missing: wanted[missing]}, wait_for_metadata=True)
    finally:
        admin.close()


def _read_positions(settings: ShipperSettings) -> dict[str, Position]:
    partition = TopicPartition(settings.positions_topic, 0)
    positions: dict[str, Position] = {}
    with committed_reader(settings.login) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            records = consumer.poll(timeout_ms=1000).get(partition, [])
            positions |= {record.key.decode(): Position(**json.loads(record.value)) for record in records}
    return positions


def main() -> None:
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description="Ship the lines of growing files into a Kafka topic, each once.")
    parser.add_argument("--settings", type=Path, required=True, help="JSON file with the fields of ShipperSettings")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        with LogShipper(ShipperSettings.read(parser.parse_args().settings)) as shipper:
            shipper.run(stop)
            print(json.dumps(shipper.positions()))
    except KstreamError as error:
        sys.exit(f"shipper: {error}")


if __name__ == "__main__":
    main()
