"""The site builds without a warning, has each page, loads nothing from another host, and finds the lines of logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs.site import PAGES
from docs.site.drawings import FOLDER, THEMES, name_of, texts
from docs.site.hooks import TOP
from tests.live.pages.browser import browser
from tests.pages import ROOT

# What a browser loads by itself, unlike a link that a person follows.
_LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")
_OF_STYLES = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `mkdocs build --strict` leaves it: a warning ends it."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def pages(site: Path) -> list[Path]:
    return [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]


def test_each_page_is_built(site: Path) -> None:
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    places = {place.removesuffix(".md") + ".html" for place in (*written, *PAGES, *TOP)}
    assert {str(path.relative_to(site)) for path in pages(site)} == places


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    assert [(path.name, found) for path in pages(site) for found in _LOADED.findall(path.read_text())] == []
    styles = list(site.rglob("*.css"))
    assert styles
    assert [(path.name, found) for path in styles for found in _OF_STYLES.findall(path.read_text())] == []


def test_nothing_of_the_sites_own_programs_is_published(site: Path) -> None:
    assert [path for path in site.rglob("*") if path.suffix in {".py", ".pyc"}] == []


def test_each_drawing_has_its_pictures_and_no_picture_is_left_over() -> None:
    """After a change of a drawing: `python -m docs.site.drawings`."""
    drawn = {f"{name_of(text)}-{theme}.svg" for text in texts() for theme in THEMES}
    assert {path.name for path in FOLDER.iterdir()} == drawn


def test_no_drawing_is_left_to_a_program_in_the_readers_browser(site: Path) -> None:
    assert [path.name for path in pages(site) if 'class="mermaid"' in path.read_text()] == []


# ---- The search ----------------------------------------------------------------------------------------------------

# Lines as people pasted them into public issues, and the page and section that a search shows first.
LINES = {
    "token (HDFS_DELEGATION_TOKEN token 74772 for etl) can't be found in cache": (
        "runbook.html#invalidtoken-the-hdfs-delegation-token-reached-its-max-lifetime"
    ),
    "Failed to APPEND_FILE /l/02.log for DFSClient_NONMAPREDUCE_-69_23 because this file lease is currently owned by": (
        "runbook.html#a-file-stays-open-for-write-recoverlease"
    ),
    "GSSException: No valid credentials provided (Mechanism level: Clock skew too great (37) - PROCESS_TGS)": (
        "runbook.html#clock-skew-too-great"
    ),
    "GSSException: No valid credentials provided (Mechanism level: Failed to find any Kerberos tgt)": (
        "runbook.html#find-the-words-you-see"
    ),
    "Concurrent update to the log. Multiple streaming jobs detected for 4711": "runbook.html#find-the-words-you-see",
    "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create file/data/x. Name node is in safe mode.": (
        "runbook.html#namenode-in-safe-mode"
    ),
    "SafeModeException": "runbook.html#find-the-words-you-see",
    "org.apache.hadoop.security.token.SecretManager$InvalidToken": (
        "runbook.html#invalidtoken-the-hdfs-delegation-token-reached-its-max-lifetime"
    ),
    "Container exited with a non-zero exit code 143": (
        "runbook.html#exit-code-143-container-exited-with-a-non-zero-exit-code"
    ),
    "User alice cannot submit applications to queue root.streams": "runbook.html#yarn-refuses-the-application-queue",
    "airflow_kstream.model.errors.RestartAborted: make sure that a successor can start": "runbook.html#restartaborted",
    "Failed to replace a bad datanode on the existing pipeline due to no more good datanodes": (
        "reference/causes.html#pipeline-failed"
    ),
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each request."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_line_of_a_log_finds_the_way_out(address: str) -> None:
    with browser() as running:
        page = running.new_page()
        page.set_default_timeout(120_000)
        first = {}
        for line in LINES:
            page.goto(f"{address}/index.html")
            page.get_by_role("textbox", name="Search").fill(line)
            page.get_by_role("textbox", name="Search").press("End")
            page.locator(".md-search-result__item").first.wait_for(state="attached")
            href = page.locator(".md-search-result__item a[href*='#']").first.get_attribute("href") or ""
            first[line] = re.sub(r"\?[^#]*", "", href.removeprefix(f"{address}/"))
    assert first == LINES
