"""Lines into a topic, each at least once under its own name, on a real broker that requires Kerberos."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from airflow_kstream.demo.shipper import LogShipper, ShipperSettings
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import CredentialError
from tests.live.shipping import arrived, lines_of, settings_of, shipping
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


def more_arrived(settings: ShipperSettings, before: int) -> bool:
    return len(arrived(settings)) > before


def test_every_line_arrives_however_often_the_shipper_is_killed(settings: ShipperSettings, tmp_path: Path) -> None:
    chance = random.Random(7)
    with being_written(settings.files["nn1"], 1), being_written(settings.files["nn2"], 2):
        for _ in range(3):
            before = len(arrived(settings))
            with shipping(settings, tmp_path):
                await_that(partial(more_arrived, settings, before), "it ships")
                time.sleep(chance.uniform(0, 1.5))
    with shipping(settings, tmp_path) as last:
        ends = last.stop()
    lines = arrived(settings)
    assert len(lines) > len(set(lines)), "some came again"
    for name, path in settings.files.items():
        expected = lines_of(name, path)
        assert len(expected) > 500
        assert sorted({line for line in lines if line[0] == name}) == sorted(expected)
        assert ends[name] == path.read_bytes().rfind(b"\n") + 1


def test_a_line_waits_until_it_is_whole_and_comes_once(settings: ShipperSettings) -> None:
    path = settings.files["nn1"]
    with LogShipper(settings) as shipper:
        path.write_bytes(b"first\nsec")
        shipper.ship_available()
        shipper.ship_available()
        assert shipper.ends == {"nn1": 6, "nn2": 0}
        path.write_bytes(b"first\nsecond\n\n")
        shipper.ship_available()
        assert shipper.ends == {"nn1": 14, "nn2": 0}
    assert arrived(settings) == [("nn1", 0, b"first"), ("nn1", 6, b"second"), ("nn1", 13, b"")]


def test_brokers_that_are_away_are_waited_for(
    minicluster: Minicluster, settings: ShipperSettings, tmp_path: Path
) -> None:
    """The reconnect logs in again, from the keytab alone."""
    path = settings.files["nn1"]
    path.write_bytes(b"first\n")
    with shipping(settings, tmp_path) as shipper:
        await_that(lambda: len(set(arrived(settings))) == 1, "the first line is there")
        minicluster.kill("kafka")
        with path.open("ab") as stream:
            stream.write(b"second\n")
        minicluster.start("kafka")
        await_that(lambda: len(set(arrived(settings))) == 2, "the second line is there")
        assert shipper.stop()["nn1"] == path.stat().st_size
    assert sorted(set(arrived(settings))) == lines_of("nn1", path)


def test_a_keytab_without_the_principal_is_refused_at_once(minicluster: Minicluster, settings: ShipperSettings) -> None:
    wrong = replace(settings, keytab=minicluster.keytab("watcher"))
    with LogShipper(wrong) as shipper, pytest.raises(CredentialError) as refusal:
        shipper.ship_available()
    assert refusal.value.principal == minicluster.principal("streamer")
    assert str(minicluster.keytab("watcher")) in str(refusal.value)
