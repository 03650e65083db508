"""What MkDocs calls while it builds the site: generated pages, the order of all, links that leave the site's folder.

Nothing here asks another host: drawings are made beforehand (`drawings.py`), and the theme's own files are local.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import nest_paths

ROOT = Path(__file__).parents[2]
# MkDocs imports this file by its path.
sys.path.insert(0, str(ROOT))

from docs.site import FILES, FRAGMENTS, PAGES  # noqa: E402
from docs.site.drawings import drawn  # noqa: E402

# Pages that stand at the top of the repository, by their place on the site.
TOP = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
# The order of the navigation: the place of each page is that of the first of these that it begins with.
ORDER = (
    "index.md",
    "runbook.md",
    "start/playground",
    "start/first-stream",
    "start/first-dag",
    "start/",
    "streams/lifecycle",
    "streams/horizons",
    "streams/token-push",
    "streams/failures",
    "streams/",
    "stuck-files.md",
    "tokens.md",
    "tickets.md",
    "triage.md",
    "doctor.md",
    "airflow/connection",
    "airflow/settings",
    "airflow/dags",
    "airflow/pages",
    "airflow/",
    "security.md",
    "compatibility.md",
    "reference/commands",
    "reference/operators",
    "reference/declarations",
    "reference/",
    "design/",
    "benchmarks.md",
    "contributing.md",
    "changelog.md",
)
# A person at 3 a.m. types the words of a log: how much earlier or later a search shows these pages.
FOUND = {"runbook.md": 4, "benchmarks.md": 0.1, "contributing.md": 0.1, "changelog.md": 0.1}
_LINK = re.compile(r"(?P<before>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()(?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_FRAGMENT = re.compile(r"<!-- generated: (\w+) -->")
_CODE = re.compile(r"^(?P<indent> *)```.*?^(?P=indent)```", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that the code writes and those at the top of the repository, and bring all into their order."""
    texts = {place: text() for place, text in (*PAGES.items(), *FILES.items())}
    texts |= {place: (ROOT / name).read_text() for place, name in TOP.items()}
    for place, text in texts.items():
        files.append(File.generated(config, place, content=text))
    places = sorted((file.src_uri for file in files.documentation_pages()), key=_rank)
    config["nav"] = nest_paths(places)  # type: ignore[no-untyped-call]
    return files


def on_nav(nav: Any, **_: Any) -> Any:
    """Name each page in the navigation by its title up to a colon: what follows says more, and is for a search."""
    for page in nav.pages:
        if heading := _TITLE.search(page.file.content_string):
            page.title = heading[1].partition(": ")[0]
    return nav


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Fill in what is generated, draw what is drawn in text, and lead links to where a page stands on the site."""
    page.meta["search"] = {"boost": FOUND.get(page.file.src_uri, 1)}
    source = TOP.get(page.file.src_uri) or f"docs/{page.file.src_uri}"
    text = _FRAGMENT.sub(lambda match: FRAGMENTS[match[1]](), markdown)
    known = {file.src_uri for file in files}

    def led(match: re.Match[str]) -> str:
        return _led(match, source, page.file.src_uri, known)

    kept = iter(_CODE.finditer(text))
    pieces, end = [], 0
    for code in kept:
        pieces += [_LINK.sub(led, text[end : code.start()]), drawn(code[0], page.file.src_uri)]
        end = code.end()
    return "".join([*pieces, _LINK.sub(led, text[end:])])


def _led(match: re.Match[str], source: str, place: str, known: set[str]) -> str:
    """Return the link to a page of the site. What the site does not have, such as a module, is named and not linked."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match["target"]))
    moved = {name: where for where, name in TOP.items()}
    if match["target"].endswith("-light.png"):
        return "\n".join(match[0].replace("-light.png)", f"-{t}.png#only-{t})") for t in ("light", "dark"))
    inside = moved.get(target) or target.removeprefix("docs/")
    if inside in known:
        link = posixpath.relpath(inside, posixpath.dirname(place) or ".")
        return f"{match['before']}{link}{match['anchor'] or ''})"
    if (ROOT / target).exists() and not target.startswith("docs/"):
        return f"`{target}`"
    return match[0]


def _rank(place: str) -> tuple[int, str]:
    return next((number for number, begin in enumerate(ORDER) if place.startswith(begin)), len(ORDER)), place
