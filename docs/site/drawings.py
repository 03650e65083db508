"""Mermaid's drawings in the pages, made once: `python -m docs.site.drawings` with a browser, npm and a network.

A site that draws them in the reader's browser would load 3 MB from another host. GitHub draws the blocks by itself.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "drawings"
THEMES = {"light": "neutral", "dark": "dark"}
_BLOCK = re.compile(r"\A *```mermaid\n(?P<text>.*?)^ *```\Z", re.DOTALL | re.MULTILINE)
_ANY = re.compile(r"^```mermaid\n.*?^```", re.DOTALL | re.MULTILINE)
_VERSION = "mermaid@11.12.0"
_PAGE = """<!doctype html><script src="mermaid.min.js"></script><body></body>"""
# A tenth of a pixel is enough, and a third of the size.
_DIGITS = re.compile(r"\d+\.\d{2,}")


def drawn(block: str, place: str) -> str:
    """Return a block of code as it is, or the pictures of a drawing."""
    match = _BLOCK.match(block)
    if match is None:
        return block
    folder = posixpath.relpath("drawings", posixpath.dirname(place) or ".")
    name = name_of(match["text"])
    return "\n".join(f"![]({folder}/{name}-{theme}.svg#only-{theme})" for theme in THEMES)


def name_of(text: str) -> str:
    """Return the name of a drawing's files, which changes with each of its words."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


def texts() -> Iterator[str]:
    """Yield each drawing of the pages, as text."""
    for path in sorted(DOCS.rglob("*.md")):
        for block in _ANY.findall(path.read_text()):
            match = _BLOCK.match(block)
            assert match is not None
            yield match["text"]


def main() -> None:
    """Draw what has no files yet, and remove the files of drawings that are gone."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    FOLDER.mkdir(exist_ok=True)
    names = {name_of(text): text for text in texts()}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        _fetch_mermaid(Path(folder))
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        page.goto(f"file://{folder}/page.html")
        for name, text in names.items():
            for theme, colours in THEMES.items():
                path = FOLDER / f"{name}-{theme}.svg"
                svg = page.evaluate(_DRAW, [f"d{name}", text, colours])
                path.write_text(_DIGITS.sub(lambda number: f"{float(number[0]):.1f}", svg) + "\n")
                sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
    for path in FOLDER.glob("*.svg"):
        if path.stem.rpartition("-")[0] not in names:
            path.unlink()


# Text in SVG itself: a picture shows no HTML.
_DRAW = """async ([id, text, theme]) => {
  mermaid.initialize({startOnLoad: false, theme, deterministicIds: true, handDrawnSeed: 1, htmlLabels: false,
    flowchart: {htmlLabels: false}, fontFamily: "sans-serif"});
  const {svg} = await mermaid.render(id, text);
  const drawing = document.createElement("div");
  drawing.innerHTML = svg;
  return new XMLSerializer().serializeToString(drawing.querySelector("svg"));
}"""


def _fetch_mermaid(folder: Path) -> None:
    subprocess.run(["npm", "pack", "--silent", _VERSION], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tgz")
    shutil.unpack_archive(archive, folder, filter="data")
    shutil.copy(folder / "package" / "dist" / "mermaid.min.js", folder)
    (folder / "page.html").write_text(_PAGE)


if __name__ == "__main__":
    main()
