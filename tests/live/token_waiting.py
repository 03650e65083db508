"""Sensors that wait for a token's end: in a task, and in the triggerer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from airflow.sdk import PokeReturnValue
from airflow.sdk.exceptions import TaskDeferred
from airflow.triggers.base import TriggerEvent

from airflow_kstream.sensors.tokens import DelegationTokenExpirySensor
from airflow_kstream.triggers.tokens import TokenExpiryTrigger

CONNECTION = "minicluster"


def sensor(**more: Any) -> DelegationTokenExpirySensor:
    return DelegationTokenExpirySensor(task_id="wait", cluster_conn_id=CONNECTION, **more)


def poked(**more: Any) -> PokeReturnValue:
    return sensor(**more).poke({})


def deferred(**more: Any) -> TokenExpiryTrigger:
    """Return the trigger that a deferred sensor leaves behind."""
    with pytest.raises(TaskDeferred) as raised:
        sensor(deferrable=True, poke_interval=0.5, **more).execute({})
    trigger = raised.value.trigger
    assert isinstance(trigger, TokenExpiryTrigger)
    name, kwargs = trigger.serialize()
    assert name == "airflow_kstream.triggers.tokens.TokenExpiryTrigger"
    return TokenExpiryTrigger(**json.loads(json.dumps(kwargs)))


@asynccontextmanager
async def watching(trigger: TokenExpiryTrigger) -> AsyncIterator[asyncio.Task[TriggerEvent]]:
    events = trigger.run()
    task = asyncio.ensure_future(anext(events))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await events.aclose()  # type: ignore[attr-defined]


async def fired(trigger: TokenExpiryTrigger, seconds: float = 60) -> dict[str, Any]:
    async with watching(trigger) as event:
        payload: dict[str, Any] = (await asyncio.wait_for(event, seconds)).payload
    return payload
