"""The pages in Airflow's own UI: the fleet of streams, each stream, stuck files, tickets, and a card.

Every process of Airflow imports this module. So the ASGI app is built at its first request, and nothing is imported
here that the API server alone needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_kstream import __version__


class Lazily:
    """An app that costs nothing before it is asked: Airflow's schedulers and workers load all plugins, too."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            self._app = self._build()
        await self._app(scope, receive, send)


# Relative, so that a `[api] base_url` with a path works. Of one address, the bundle is evaluated once for all apps.
_BUNDLE = f"kstream/static/kstream.js?v={__version__}"


def _app() -> Any:
    from airflow_kstream.plugin.api import app

    return app


class KstreamPlugin(AirflowPlugin):
    """The plugin. Its pages are React apps in Airflow's UI; its API reads Airflow's database and nothing else."""

    name = "kstream"
    fastapi_apps = [{"name": "kstream", "url_prefix": "/kstream", "app": Lazily(_app)}]  # noqa: RUF012  Airflow's own
    react_apps = [  # noqa: RUF012
        {
            "name": "Streams",
            "bundle_url": _BUNDLE,
            "destination": "nav",
            "url_route": "kstream",
            "nav_top_level": True,
            "icon": "kstream/static/streams.svg",
            "icon_dark_mode": "kstream/static/streams-dark.svg",
        },
        {"name": "StreamsCard", "bundle_url": _BUNDLE, "destination": "dashboard", "url_route": "kstream-card"},
    ]
