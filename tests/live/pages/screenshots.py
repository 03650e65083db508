"""Pictures of each page for README and docs, of a playground that has run for some minutes: URL PASSWORD.

python -m tests.live.pages.screenshots http://127.0.0.1:28080 PASSWORD
"""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_kstream.demo.airflow_api import Login
from airflow_kstream.demo.playground import CONNECTION
from tests.live.pages.browser import visit

_PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
_PAGES = {
    "fleet": "/plugin/kstream",
    "stream": f"/plugin/kstream?cluster={CONNECTION}&stream=orders",
    "files": "/plugin/kstream?view=files",
    "tickets": "/plugin/kstream?view=tickets",
}
_SIZE = {"width": 1240, "height": 820}


def main(url: str, password: str) -> None:
    """Take each page, light and dark, and the card on Airflow's first page."""
    with visit(url, Login("admin", password), **_SIZE) as seen:
        for theme in ("light", "dark"):
            seen.open()
            seen.theme(theme)
            for name, path in _PAGES.items():
                seen.open(path)
                seen.page.locator(".ks h1").wait_for()
                seen.page.screenshot(path=_PICTURES / f"{name}-{theme}.png")
            seen.page.goto(url)
            seen.page.locator(".ks-card li").first.wait_for()
            seen.page.locator(".ks-card").screenshot(path=_PICTURES / f"card-{theme}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
