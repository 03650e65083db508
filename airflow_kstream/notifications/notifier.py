"""Airflow's notifiers, by their class: checked where DAGs are parsed, made where an event happens."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from airflow.sdk import BaseNotifier

from airflow_kstream import settings
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput


def configured(declared: NotifyPolicy) -> NotifyPolicy:
    """Return the declared notifier, or the one of `[kstream] notifier` where the declaration names none.

    Raises InvalidInput: when a setting is wrong.
    """
    return declared if declared.notifier else settings.notifier()


def require_usable(notify: NotifyPolicy, where: str) -> None:
    """Import the notifier's class and compare its parameters with the arguments; make none.

    Raises InvalidInput: when this process can't import it, it is not a notifier, or it does not take the arguments.
    """
    if notify.notifier is None:
        return
    kind = _class_of(notify.notifier, where)
    try:
        inspect.signature(kind).bind(**notify.kwargs)
    except TypeError as error:
        raise InvalidInput(f"{where}kwargs of {notify.notifier}: {error}") from error


def notify_now(notify: NotifyPolicy, context: Mapping[str, Any]) -> None:
    """Let a new notifier tell the event of the context, in this thread. Blocks; raises whatever the notifier raises.

    A new one each time, because rendering its templates changes it. One that can only `async_notify` gets a loop of its
    own: Airflow's questions go from there to the loop of the triggerer.
    """
    if notify.notifier is None:
        return
    kind = _class_of(notify.notifier, "")
    notifier = kind(**notify.kwargs)
    if kind.notify is not BaseNotifier.notify:
        notifier({**context})
        return

    async def told() -> None:
        notifier.context = {**context}  # type: ignore[typeddict-item]
        await notifier

    asyncio.run(told())


def _class_of(path: str, where: str) -> type[BaseNotifier]:
    try:
        module, _, name = path.rpartition(".")
        kind = getattr(import_module(module), name)
    except Exception as error:  # A module may raise anything while it is imported.
        raise InvalidInput(f"{where}notifier is {path!r}, which can't be imported here: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise InvalidInput(f"{where}notifier is {path!r}; allowed is a class derived from Airflow's BaseNotifier")
    return kind
