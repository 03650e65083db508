"""Fixtures of folders that live through whole lives; their conftest.py imports them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_kstream.clients.kerberos import tickets
from tests.simulated.life import Life


@pytest.fixture
def life() -> Iterator[Life]:
    """A stream that needs no KDC, because a ticket is always there, and no patience, because a wait moves its clock."""
    with lived() as life:
        yield life


@contextmanager
def lived() -> Iterator[Life]:
    """Live as the fixture `life` does: a property lives many lives in one test."""
    life = Life()
    with pytest.MonkeyPatch.context() as monkeypatch:
        # libkrb5 asks a KDC of its own accord: nothing can be handed to it in place of one.
        monkeypatch.setattr(tickets, "acquire", life.kdc.acquire)
        # A wait lasts for minutes, also tenacity's, which takes no clock.
        monkeypatch.setattr(time, "sleep", life.clock.sleep)
        # The same waits end by this clock.
        monkeypatch.setattr(time, "monotonic", life.clock.monotonic)
        yield life
