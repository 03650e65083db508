"""The system's Chromium, as somebody who is logged in to an Airflow uses it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import requests
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from airflow_kstream.demo.airflow_api import Login

# Without the last ones it looks for updates at every start. Root has no sandbox to offer.
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What a busy machine may take to show a page, to start a Spark job, or to replace one.
_SECONDS = 300
# By itself it expects everything within five seconds.
expect.set_options(timeout=_SECONDS * 1000)


@dataclass
class Visit:
    """A window of one reader. `errors` are those that scripts reported, which no page may have."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)

    def open(self, path: str = "/plugin/kstream") -> None:
        self.page.goto(f"{self.url}{path}")
        self.page.locator(".ks h1, .ks-card").first.wait_for()

    def theme(self, name: str) -> None:
        """Choose light or dark, as Airflow's menu does."""
        self.page.evaluate("name => localStorage.setItem('theme', name)", name)
        self.page.reload()
        self.page.locator(".ks h1").wait_for()

    @property
    def overhang(self) -> int:
        """Return by how many pixels the page is wider than its window, or a table of it that stacks than its panel."""
        return int(self.page.evaluate(_OVERHANG))

    @property
    def dark(self) -> bool:
        """Return whether the page's text is lighter than what is behind it."""
        return bool(self.page.evaluate(_DARK))


_OVERHANG = """() => Math.max(
    ...[...document.querySelectorAll('.ks, .ks-panel:has(.ks-stack)')].map(each => each.scrollWidth - each.clientWidth)
)"""
# A colour may be written in any way, so each is painted. Behind everything is the browser's own white, or black.
_DARK = """() => {
    const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const paint = color => {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = color;
        pen.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
        return {light: red + green + blue, alpha};
    };
    const title = document.querySelector('.ks h1');
    const grounds = [];
    for (let each = title; each; each = each.parentElement) grounds.push(paint(getComputedStyle(each).backgroundColor));
    const asked = getComputedStyle(document.documentElement).colorScheme.includes('dark');
    const ground = grounds.find(each => each.alpha > 0) ?? {light: asked ? 0 : 765};
    return paint(getComputedStyle(title).color).light > ground.light;
}"""


def chromium() -> str:
    """Return the system's Chromium, under whichever name it has."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "./kstream installs Chromium for the tests"
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Run the system's Chromium until the block ends."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=list(_OPTIONS))
        try:
            yield running
        finally:
            running.close()


@contextmanager
def visit(url: str, login: Login, width: int = 1400, height: int = 1000) -> Iterator[Visit]:
    """Open a window of somebody who is logged in."""
    with browser() as running:
        context = running.new_context(viewport={"width": width, "height": height}, timezone_id="Europe/Berlin")
        context.set_default_timeout(_SECONDS * 1000)
        _log_in(context, url, login)
        seen = Visit(context.new_page(), url)
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        yield seen


def _log_in(context: BrowserContext, url: str, login: Login) -> None:
    who = {"username": login.username, "password": login.password}
    token = requests.post(f"{url}/auth/token", json=who, timeout=_SECONDS).json()["access_token"]
    context.add_cookies([{"name": "_token", "value": token, "url": url}])
