"""An ASGI app that is built at its first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Lazily:
    """An app that costs nothing before it is asked: Airflow's schedulers and workers load all plugins, too."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            self._app = self._build()
        await self._app(scope, receive, send)
