"""Pages that can't lie: whatever a person copies from them parses, is read, compiles or resolves."""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.get_provider_info import get_provider_info
from airflow_kstream.metrics import METRICS
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import Baseline
from airflow_kstream.model.kerberos.declarations import TicketDeclaration, TokenDeclaration
from airflow_kstream.model.leases.requests import LeaseDeclaration
from airflow_kstream.model.logs.signature import signatures_in
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.supervise.clusters.connection import ConnectionFields, connection_fields
from docs.site import FRAGMENTS, PAGES
from tests.pages import ROOT, Block, Page, pages

BLOCKS = [block for page in pages() for block in page.blocks]
SETTINGS = get_provider_info()["config"]["kstream"]["options"]

# ---- YAML, JSON, configuration -------------------------------------------------------------------------------------

STREAM = {"name": "orders", "credentials": {"mode": "ticket"}, "application": "/a.py", "checkpoints": ["/c/orders"]}
CONNECTION = {"principal": "etl@EXAMPLE.COM", "ticket_cache": "/c", "state_dir": "/kstream"}
_RULE = {"alert", "expr", "for", "labels", "annotations"}


def read_rules(declaration: Mapping[str, Any]) -> None:
    for rule in [rule for group in declaration["groups"] for rule in group["rules"]]:
        if not rule.keys() <= _RULE or "expr" not in rule:
            raise InvalidInput(f"{rule} is not a rule of Prometheus")


# What a block is, by a field that no other has; and its reader, to which it may leave out what it is not about.
READERS: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "signatures": lambda declared: signatures_in(json.dumps(declared)),
    "accepted": Baseline.from_mapping,
    "groups": read_rules,
    "paths": LeaseDeclaration.from_mapping,
    "principals": TicketDeclaration.from_mapping,
    "renew_at": TicketDeclaration.from_mapping,
    "within": TokenDeclaration.from_mapping,
    "users": TokenDeclaration.from_mapping,
}


def read_block(text: str) -> None:
    """Read YAML by the reader that it is for. Raises InvalidInput: when it has none, or a field is wrong."""
    declared = read_mapping(text)
    for field, read in READERS.items():
        if field in declared:
            read(declared)
            return
    if declared.keys() & {each.name for each in fields(ConnectionFields)}:
        connection_fields("example", CONNECTION | declared)
    elif declared.keys() & {each.name for each in fields(StreamSpec)}:
        StreamSpec.from_mapping(STREAM | declared)
    else:
        raise InvalidInput(f"no reader of ours takes {', '.join(declared)}; give another program's file a title")


def wrong_yaml(block: Block) -> str:
    """Return what is wrong with a block; one with a title is a file of another program."""
    if block.language not in {"yaml", "yml"} or "title=" in block.info:
        return ""
    try:
        read_block(block.text)
    except InvalidInput as error:
        return f"{block.place}: {error.message}"
    return ""


def test_each_declaration_is_read_by_its_reader() -> None:
    assert sum(block.language == "yaml" for block in BLOCKS) > 5
    assert [wrong for block in BLOCKS if (wrong := wrong_yaml(block))] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("refresh: {push_ratio: 0.5}", ""),
        ("refresh: {push_ration: 0.5}", "refresh.push_ration: there is no such field"),
        ("state_dir: kstream\n", "connection example: state_dir is 'kstream'"),
        ("services: {db: {}}", "no reader of ours takes services"),
        ("a: [", "this is not YAML"),
    ],
)
def test_a_declaration_that_is_refused_is_found(text: str, wrong: str) -> None:
    assert wrong_yaml(Block("page", 1, "yaml", text)).startswith(f"page:1: {wrong}" if wrong else "")
    assert bool(wrong) is bool(wrong_yaml(Block("page", 1, "yaml", text)))


def test_each_block_of_json_is_json() -> None:
    written = [json.loads(block.text) for block in BLOCKS if block.language == "json"]
    assert all(isinstance(value, dict) for value in written)
    assert written


def test_each_setting_that_a_page_names_exists() -> None:
    texts = [text for page in pages() for text in (*page.inline, *(block.text for block in page.blocks))]
    named = [name for text in texts for name in re.findall(r"\[kstream\] (\w+)|AIRFLOW__KSTREAM__(?!NAME)(\w+)", text)]
    named = [first or second for first, second in named]
    for block in BLOCKS:
        if block.text.startswith("[kstream]"):
            named += re.findall(r"^(\w+) *=", block.text.partition("\n[")[0], re.MULTILINE)
    assert {name.lower() for name in named} - SETTINGS.keys() == set()
    assert len(named) > 5


def test_each_metric_that_a_page_names_is_sent() -> None:
    named = {text for page in pages() for text in page.inline if re.fullmatch(r"kstream(\.[a-z_]+)+", text)}
    assert {name for name in named if name.removeprefix("kstream.") not in METRICS} == set()


# ---- Python --------------------------------------------------------------------------------------------------------

# Modules that a job imports: they are shipped with it.
_SHIPPED = "airflow_kstream.jobs."


def unresolved(source: str) -> Iterator[str]:
    """Yield each import of ours that fails. Raises SyntaxError: when the source is not Python."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("airflow_kstream", "kstream_")):
            module = node.module if str(node.module).startswith("airflow_kstream") else f"{_SHIPPED}{node.module}"
            yield from (f"{node.module}.{name.name}" for name in node.names if not has(str(module), name.name))
        elif isinstance(node, ast.Import):
            ours = [name.name for name in node.names if name.name.startswith("airflow_kstream")]
            yield from (name for name in ours if not has(name))


def has(module: str, name: str = "") -> bool:
    try:
        found = importlib.import_module(module)
    except ImportError:
        return False
    return not name or hasattr(found, name)


def test_each_block_of_python_compiles_and_finds_what_it_imports() -> None:
    blocks = [block for block in BLOCKS if block.language in {"python", "py"}]
    assert len(blocks) > 5
    assert [(block.place, name) for block in blocks for name in unresolved(block.text)] == []


def test_an_import_that_is_not_there_is_found() -> None:
    source = (
        "import json\nfrom airflow_kstream.settings import folder, foulder\nfrom kstream_driver import Generations\n"
    )
    assert [*unresolved(source)] == ["airflow_kstream.settings.foulder", "kstream_driver.Generations"]


# ---- Links and paths -----------------------------------------------------------------------------------------------

BY_NAME = {page.name: page for page in pages()}
_BRACES = re.compile(r"\{([^{}]*)\}")
_TOPS = sorted(f"{path.name}/" if path.is_dir() else path.name for path in ROOT.iterdir())
# What `./kstream` and the tools make.
_MADE = (".venv/", "build/", "dist/", ".git/")


def broken(page: Page) -> Iterator[str]:
    """Yield each link of a page that leads nowhere: to no file, or to no heading of it."""
    for link in page.links:
        path, _, anchor = link.partition("#")
        target = (ROOT / page.name).parent / path if path else ROOT / page.name
        name = str(Path(*target.resolve().parts[len(ROOT.parts) :]))
        if name.removeprefix("docs/") in PAGES and page.name.startswith("docs/"):
            continue
        if not target.exists() or (anchor and anchor not in (BY_NAME.get(name) or Page.of(target.resolve())).anchors):
            yield link


def lost(page: Page) -> Iterator[str]:
    """Yield each path of the repository in backticks that does not exist."""
    for text in page.inline:
        if text.startswith(tuple(top for top in _TOPS if top.endswith("/"))) and not text.startswith(_MADE):
            yield from (path for path in expanded(text) if " " not in path and not any(ROOT.glob(path)))


def expanded(text: str) -> list[str]:
    if not (braces := _BRACES.search(text)):
        return [text]
    return [
        path
        for word in braces[1].split(",")
        for path in expanded(text[: braces.start()] + word.strip() + text[braces.end() :])
    ]


def test_each_link_leads_somewhere() -> None:
    assert [(page.name, link) for page in pages() for link in broken(page)] == []


def test_each_path_of_the_repository_exists() -> None:
    assert [(page.name, path) for page in pages() for path in lost(page)] == []


def test_each_place_for_generated_text_has_its_text() -> None:
    named = {name for page in pages() for name in re.findall(r"<!-- generated: (\w+) -->", page.text)}
    assert named <= FRAGMENTS.keys()


def test_no_page_shows_a_template_of_prometheus() -> None:
    assert [place for place, page in PAGES.items() if place.startswith("reference/alerts") and "{{" in page()] == []
    assert "nobody has looked at its streams for a time." in PAGES["reference/alerts.md"]()


@pytest.mark.parametrize(
    ("text", "nowhere"),
    [
        ("[a](CHANGELOG.md), [b](SECURITY.md#who), ![c](.readme/none.png), [d](https://example.org)", 2),
        ("# One `two`\n[e](#one-two) [f](#two)\n```\n[g](none.md)\n```", 1),
    ],
)
def test_a_link_that_leads_nowhere_is_found(text: str, nowhere: int) -> None:
    assert len([*broken(Page("README.md", text))]) == nowhere + ("[e]" in text)


def test_a_path_that_does_not_exist_is_found() -> None:
    page = Page(
        "README.md", "`tests/unit/`, `tests/{unit,none}/`, `airflow_kstream/nothing.py`, `docs/design/*.md`, `/no`"
    )
    assert [*lost(page)] == ["tests/none/", "airflow_kstream/nothing.py"]
