"""The fleet's page with many streams: from a click to its last row, against the same rows by Airflow's public API.

    python -m benchmarks.pages --streams 500 --rounds 5

A real API server on this machine with a database of SQLite, and Chromium. The public API has a request for each asset;
a browser sends six at once. Nothing is drawn of them here. The click is on Airflow's first page, with a server that has
served the page before. The result is the median of the rounds.
"""

from __future__ import annotations

import os
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from rich.console import Console

from airflow_kstream.assets import asset_uri
from airflow_kstream.demo.airflow_api import AirflowApi
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.supervisor import ProcessSupervisor
from airflow_kstream.model.errors import Unavailable
from benchmarks.report import Figure, save, table
from tests.live.pages.browser import Visit, visit
from tests.live.pages.fleets import many
from tests.live.pages.stored import store

_WIDTH, _AT_ONCE = 150, 6
# From the click until a frame shows the last row of the table, scrolled into sight.
_CLICK = """stream => new Promise(done => {
    const began = performance.now();
    const look = () => {
        const row = document.querySelector(`tr[data-stream="${stream}"]`);
        if (!row) return requestAnimationFrame(look);
        row.scrollIntoView();
        requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - began) / 1000)));
    };
    document.querySelector('a[href$="/plugin/kstream"]').click();
    look();
})"""


def main() -> None:
    """Start an API server, measure, and print one table."""
    asked = _asked()
    load = os.getloadavg()[0]
    with _serving(asked.streams) as home:
        figures = list(_figures(home, asked.streams, asked.rounds))
    caption = f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {asked.rounds} rounds"
    Console(width=None if Console().is_terminal else _WIDTH).print(table(figures, caption))
    if asked.json:
        save(figures, asked.json)


@contextmanager
def _serving(streams: int) -> Iterator[AirflowHome]:
    with tempfile.TemporaryDirectory(prefix="kstream-pages-") as root, ProcessSupervisor() as supervisor:
        (Path(root) / "dags").mkdir()
        home = AirflowHome(Path(root) / "home", Path(root) / "dags")
        home.prepare()
        store(home, many(streams))
        supervisor.start(next(part for part in home.components() if part.name == "api-server"))
        with closing(home.api()) as api:
            while not _answers(api):
                time.sleep(0.2)
        yield home


def _answers(api: AirflowApi) -> bool:
    try:
        return bool(api.health())
    except Unavailable:
        return False


def _figures(home: AirflowHome, streams: int, rounds: int) -> Iterator[Figure]:
    """Measure the sides in turns, so that other load on this machine affects both."""
    task, public, ours = f"see the last of {streams} streams", [], []
    with visit(home.url, home.login) as seen, closing(home.api()) as api:
        # The page has the order; the last row is one that needs nobody.
        seen.open()
        last = str(seen.page.locator("tr[data-stream]").last.get_attribute("data-stream"))
        for _ in range(rounds):
            public.append(_by_public_api(api, streams))
            ours.append(_by_click(seen, last))
    yield Figure(task, f"public API, {streams} requests, {_AT_ONCE} at once, nothing drawn", median(public), streams)
    yield Figure(task, "the fleet's page, from the click", median(ours), streams, note=f"slowest {max(ours):.2f} s")


def _by_click(seen: Visit, last: str) -> float:
    seen.page.goto(seen.url)
    seen.page.locator('a[href$="/plugin/kstream"]').first.wait_for()
    return float(seen.page.evaluate(_CLICK, last))


def _by_public_api(api: AirflowApi, streams: int) -> float:
    began = time.monotonic()
    assets = [asset for page in range(0, streams, 100) for asset in _assets(api, page)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = list(pool.map(lambda asset: api.call("GET", f"/assets/{asset['id']}/state-store/verdict"), assets))
    assert len(rows) >= streams, len(rows)
    return time.monotonic() - began


def _assets(api: AirflowApi, offset: int) -> list[dict[str, Any]]:
    pattern = quote(asset_uri("prod", "stream-"))
    assets: list[dict[str, Any]] = api.call("GET", f"/assets?uri_pattern={pattern}&limit=100&offset={offset}")["assets"]
    return assets


def _asked() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
