"""Pictures of each page for README and docs, light and dark; as wide as a phone, to be looked at, in build/pictures.

python -m tests.live.pages.screenshots                  of a playground that it starts and ends: about five minutes
python -m tests.live.pages.screenshots URL PASSWORD     of one that has run for some minutes
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from airflow_kstream.demo.airflow_api import Login
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.environment import end_on_signals
from airflow_kstream.demo.playground import CONNECTION, start_cluster, start_playground
from tests.live.pages.browser import Visit, visit

_ROOT = Path(__file__).parents[3]
PICTURES = _ROOT / "docs" / "pictures"
ON_A_PHONE = _ROOT / "build" / "pictures"
PAGES = {
    "fleet": "/plugin/kstream",
    "stream": f"/plugin/kstream?cluster={CONNECTION}&stream=orders",
    "files": "/plugin/kstream?view=files",
    "tickets": "/plugin/kstream?view=tickets",
}
SIZE = {"width": 1240, "height": 820}
PHONE = {"width": 390, "height": 844}
# Milliseconds until the page has the way out for the playground's stream that hangs.
_UNTIL_STALLED = 1_500_000


def main(url: str = "", password: str = "") -> None:
    """Take all pictures, of a playground of its own where none is named."""
    with _playground() if not url else _given(url, password) as (served, login):
        with visit(served, login, **SIZE) as seen:
            seen.open()
            seen.page.get_by_text("What now").first.wait_for(timeout=_UNTIL_STALLED)
            take_pages(seen)
            take_card(seen)
        with visit(served, login, **PHONE) as seen:
            take_pages(seen, ON_A_PHONE)


def take_pages(seen: Visit, folder: Path = PICTURES) -> None:
    """Take each page, light and dark. Raises AssertionError: when one is wider than its window, or a script fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        seen.open()
        seen.theme(theme)
        for name, path in PAGES.items():
            seen.open(path)
            seen.page.locator(".ks h1").wait_for()
            assert seen.overhang <= 0, f"{name} is wider than its window"
            seen.page.screenshot(path=folder / f"{name}-{theme}.png")
    assert seen.errors == []


def take_card(seen: Visit, folder: Path = PICTURES) -> None:
    """Take the card on Airflow's first page, light and dark."""
    for theme in ("light", "dark"):
        seen.open()
        seen.theme(theme)
        seen.page.goto(seen.url)
        seen.page.locator(".ks-card li").first.wait_for()
        seen.page.locator(".ks-card").screenshot(path=folder / f"card-{theme}.png")


@contextmanager
def _given(url: str, password: str) -> Iterator[tuple[str, Login]]:
    yield url, Login("admin", password)


@contextmanager
def _playground() -> Iterator[tuple[str, Login]]:
    end_on_signals()
    console = DemoConsole(Console())
    with tempfile.TemporaryDirectory(prefix="kstream-pictures-") as folder, ExitStack() as stack:
        started = start_playground(start_cluster(Path(folder), console, stack), Path(folder), console, stack)
        yield started.home.url, started.home.login


if __name__ == "__main__":
    main(*sys.argv[1:])
