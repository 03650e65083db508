"""Lines into a topic, each exactly once, on a real broker that requires Kerberos."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_kstream.demo.shipping.shipper import LogShipper, Shipped, ShipperSettings
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Conflict, CredentialError, InvalidInput
from tests.live.shipping import committed, lines_of, settings_of, shipping
from tests.live.streams import await_that


@pytest.fixture
def settings(minicluster: Minicluster, tmp_path: Path, request: pytest.FixtureRequest) -> ShipperSettings:
    """Two growing files, shipped into a topic of this test's own."""
    files = {name: tmp_path / f"{name}.log" for name in ("nn1", "nn2")}
    for path in files.values():
        path.touch()
    return settings_of(minicluster, str(request.node.name)[:80], files)


@contextmanager
def being_written(path: Path, seed: int) -> Iterator[None]:
    """A daemon that writes lines of all sorts, often cut in the middle, until the end of the block."""
    over, chance = threading.Event(), random.Random(seed)

    def write() -> None:
        with path.open("ab", buffering=0) as stream:
            while not over.wait(chance.uniform(0, 0.02)):
                text = b"".join(chance.randbytes(chance.randrange(80)) + b"\n" for _ in range(chance.randrange(30)))
                cut = chance.randint(0, len(text))
                stream.write(text[:cut])
                time.sleep(chance.uniform(0, 0.01))
                stream.write(text[cut:])

    daemon = threading.Thread(target=write)
    daemon.start()
    try:
        yield
    finally:
        over.set()
        daemon.join()


def test_every_line_arrives_once_however_often_the_shipper_is_killed(settings: ShipperSettings, tmp_path: Path) -> None:
    chance = random.Random(7)
    with being_written(settings.files["nn1"], 1), being_written(settings.files["nn2"], 2):
        for _ in range(5):
            with shipping(settings, tmp_path):
                time.sleep(chance.uniform(0, 1.5))
    with shipping(settings, tmp_path) as last:
        positions = last.stop()
    arrived = committed(settings)
    for name, path in settings.files.items():
        expected = lines_of(name, path)
        assert len(expected) > 1000
        assert [line for line in arrived if line[0] == name] == expected
        assert positions[name] == path.read_bytes().rfind(b"\n") + 1


def test_a_line_waits_until_it_is_whole(settings: ShipperSettings) -> None:
    path = settings.files["nn1"]
    with LogShipper(settings) as shipper:
        path.write_bytes(b"first\nsec")
        assert shipper.ship_available() == Shipped(lines=1, size=5)
        assert shipper.ship_available() == Shipped()
        path.write_bytes(b"first\nsecond\n\n")
        assert shipper.ship_available() == Shipped(lines=2, size=6)
        assert shipper.positions() == {"nn1": 14, "nn2": 0}
    assert committed(settings) == [("nn1", 0, b"first"), ("nn1", 6, b"second"), ("nn1", 13, b"")]


def test_a_shipper_that_was_thought_dead_is_fenced(settings: ShipperSettings) -> None:
    """It wakes up after its successor has started: it must neither ship nor continue."""
    path = settings.files["nn1"]
    path.write_bytes(b"first\n")
    with LogShipper(settings) as sleeper, LogShipper(settings) as successor:
        sleeper.ship_available()
        successor.ship_available()
        path.write_bytes(b"first\nsecond\n")
        with pytest.raises(Conflict, match="another producer took over"):
            sleeper.ship_available()
        assert successor.ship_available() == Shipped(lines=1, size=6)
    assert committed(settings) == lines_of("nn1", path)


def test_a_rotated_file_is_refused_before_any_line_of_it_is_shipped(settings: ShipperSettings) -> None:
    path = settings.files["nn1"]
    path.write_bytes(b"first\n")
    with LogShipper(settings) as shipper:
        shipper.ship_available()
        path.write_bytes(b"a new file\n")
        with pytest.raises(InvalidInput, match="rotated, truncated or replaced"):
            shipper.ship_available()
    assert committed(settings) == [("nn1", 0, b"first")]


def test_brokers_that_are_away_are_waited_for(
    minicluster: Minicluster, settings: ShipperSettings, tmp_path: Path
) -> None:
    """The reconnect logs in again, from the keytab alone."""
    path = settings.files["nn1"]
    path.write_bytes(b"first\n")
    with shipping(settings, tmp_path) as shipper:
        await_that(lambda: len(committed(settings)) == 1, "the first line is there")
        minicluster.kill("kafka")
        with path.open("ab") as stream:
            stream.write(b"second\n")
        minicluster.start("kafka")
        await_that(lambda: len(committed(settings)) == 2, "the second line is there")
        assert shipper.stop()["nn1"] == path.stat().st_size
    assert committed(settings) == lines_of("nn1", path)


def test_a_keytab_without_the_principal_is_refused_at_once(minicluster: Minicluster, settings: ShipperSettings) -> None:
    wrong = replace(settings, keytab=minicluster.keytab("watcher"))
    with LogShipper(wrong) as shipper, pytest.raises(CredentialError) as refusal:
        shipper.ship_available()
    assert refusal.value.principal == minicluster.principal("streamer")
    assert str(minicluster.keytab("watcher")) in str(refusal.value)


def test_settings_with_a_wrong_field_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "shipper.json"
    file.write_text('{"topic": "t", "server": "localhost:1"}')
    with pytest.raises(InvalidInput, match="server"):
        ShipperSettings.read(file)
