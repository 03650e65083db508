"""Notifiers as a DAG author would name them: they record, raise or hang."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseNotifier, Context

# What was told, in order, by the name that the notifier was given.
told: list[tuple[str, str]] = []
released = threading.Event()
# One permit for each that hangs.
hanging = threading.Semaphore(0)
attempts: list[str] = []

HERE = __name__


class Recording(BaseNotifier):
    """A notifier that keeps each message; `text` is templated."""

    template_fields: Sequence[str] = ("text",)

    def __init__(self, name: str = "default", text: str = "{{ event.words }}") -> None:
        super().__init__()
        self.name = name
        self.text = text

    def notify(self, context: Context) -> None:
        told.append((self.name, self.text))


class Reading(Recording):
    """A notifier that would read a file of the worker."""

    def __init__(self, name: str, template: str) -> None:
        super().__init__(name)
        self.template = template


class Asynchronous(Recording):
    """A notifier for the triggerer alone."""

    notify = BaseNotifier.notify

    async def async_notify(self, context: Context) -> None:
        told.append((self.name, self.text))


class Raising(BaseNotifier):
    """A notifier whose server refuses the first `times`, or is `dark` then: a connection to it times out."""

    def __init__(self, times: int = 10**6, *, dark: bool = False) -> None:
        super().__init__()
        self.times = times
        self.dark = dark

    def notify(self, context: Context) -> None:
        attempts.append("raised")
        if len(attempts) <= self.times:
            if self.dark:
                raise TimeoutError("timed out")
            raise OSError("https://bot:hunter22@chat/ refuses password=hunter22")
        event: Any = dict(context)["event"]
        told.append(("raising", event["words"]))


class Hanging(BaseNotifier):
    """A notifier whose server accepts and does not answer, until the test releases it."""

    def notify(self, context: Context) -> None:
        attempts.append("hangs")
        hanging.release()
        released.wait()


def forget() -> None:
    told.clear()
    attempts.clear()
    released.clear()
    while hanging.acquire(blocking=False):
        pass
