"""Shippers on the minicluster, as processes that tests can kill, and the contents of their topic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from airflow_kstream.clients.kafka import KafkaLogin, kafka_trouble
from airflow_kstream.demo.shipper import ShipperSettings
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.declared import written
from tests.live.streams import await_that

# File, byte offset, content.
Line = tuple[str, int, bytes]


def settings_of(minicluster: Minicluster, topic: str, files: Mapping[str, Path]) -> ShipperSettings:
    return ShipperSettings(
        bootstrap_servers=minicluster.bootstrap_servers,
        topic=topic,
        files=files,
        principal=minicluster.principal("streamer"),
        keytab=minicluster.keytab("streamer"),
    )


class ShipperProcess:
    """A shipper of its own process, with no ticket cache at all, that has found out where to go on."""

    def __init__(self, settings: ShipperSettings, folder: Path) -> None:
        file, log = folder / "shipper.json", folder / "shipper.log"
        file.write_text(json.dumps(written(settings)))
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow_kstream.demo.shipper", "--settings", str(file)],
                env=dict(os.environ, KRB5CCNAME=f"FILE:{folder}/no-cache"),
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        await_that(lambda: "shipping into" in log.read_text(), f"the shipper ships; {log.read_text()}")

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()

    def stop(self) -> dict[str, int]:
        """Let it ship what is complete; return the positions that it prints."""
        self._process.terminate()
        printed, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0
        positions: dict[str, int] = json.loads(printed)
        return positions


@contextmanager
def shipping(settings: ShipperSettings, folder: Path) -> Iterator[ShipperProcess]:
    process = ShipperProcess(settings, folder)
    try:
        yield process
    finally:
        process.kill()


def stable_ends(login: KafkaLogin, topic: str) -> dict[int, int]:
    """For each partition, the offset after the last record that a reader can see now.

    A stream has drained the topic when the offsets of its last commit have reached these. Without a topic, empty.
    """
    with kafka_trouble(f"read the ends of {topic}", login), closing(KafkaConsumer(**login.options())) as consumer:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        return {partition.partition: end for partition, end in consumer.end_offsets(partitions).items()}


def arrived(settings: ShipperSettings) -> list[Line]:
    """Return every line in the topic, in its order, also those that came again; none while there is no topic."""
    ends = {TopicPartition(settings.topic, n): end for n, end in stable_ends(settings.login, settings.topic).items()}
    if not ends:
        return []
    found: list[Line] = []
    with closing(KafkaConsumer(**settings.login.options())) as consumer:
        consumer.assign(list(ends))
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    name, _, offset = record.key.decode().partition(":")
                    found.append((name, int(offset), record.value))
    return found


def lines_of(name: str, path: Path) -> list[Line]:
    """Return the complete lines of a file, read in the simplest way."""
    found, offset = [], 0
    for content in path.read_bytes().split(b"\n")[:-1]:
        found.append((name, offset, content))
        offset += len(content) + 1
    return found
