"""The site builds without a warning, has each page in its navigation, and loads nothing from another host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs.site import PAGES
from docs.site.drawings import FOLDER, THEMES, name_of, texts
from docs.site.hooks import TOP
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
