"""Commands in the pages parse: what a person copies from them runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from docs.site.commands import app
from tests.pages import Block, pages

BLOCKS = [block for page in pages() for block in page.blocks]
# What `./kstream` does by itself.
OF_THE_SCRIPT = {"test", "docs"}
_CALL = re.compile(r"(?:\$ |# )?(?:[A-Z_]+=\S+ )*(?:\./|airflow |\.venv/bin/)?kstream (?P<words>.+)")
# Brackets around what is optional, and three dots for more words.
_LEFT_OPEN = re.compile(r"(?<!\S)(?:\[(?=-)|\.\.\.(?!\S))|(?<=\S)\](?!\S)")
# A word for what a person fills in, or a file that is on no machine of ours.
_STANDS_FOR = re.compile(r"[\[(']*(?:[A-Z][A-Z_-]*\b|/|[\w.-]+\.(?:ya?ml|html|bin)\b)")
_ENDS = {"|", "||", "&&", ";", ">", ">>", "<", "2>&1", "&"}


@pytest.fixture(scope="module")
def command_line() -> Any:
    """The whole command line, built once."""
    return app()


def calls(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of kstream in a block; `a|b` are two calls, and what is optional is given."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if match := _CALL.fullmatch(line.strip()):
            words = shlex.split(_LEFT_OPEN.sub(" ", match["words"]), comments=True)
            end = next((number for number, word in enumerate(words) if word in _ENDS), len(words))
            if words[:end]:
                yield from alternatives(words[:end])


def alternatives(words: list[str]) -> Iterator[list[str]]:
    """Yield the words with each choice of a command, such as `status|down`."""
    several = next((n for n, word in enumerate(words[:2]) if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word)), None)
    if several is None:
        yield words
        return
    for word in words[several].split("|"):
        yield [*words[:several], word, *words[several + 1 :]]


def wrong_with(group: Any, words: list[str], *, whole: bool = True) -> str:
    """Return why the call does not parse, nothing if it does; of one that is not whole, arguments may be missing."""
    command, whole = group, whole and words[0] != "help"
    words = words[1:] if words[0] == "help" else words
    while hasattr(command, "commands"):
        words = words[2:] if words and words[0] in {"--cluster", "-c"} else words
        if not words or words[0] in {"-h", "--help", "--version"}:
            return ""
        if (found := command.commands.get(words[0])) is None:
            return f"there is no command {words[0]}"
        command, words = found, words[1:]
    context = command.make_context(command.name, [], resilient_parsing=True)
    context.resilient_parsing = False
    try:
        given, left, _ = command.make_parser(context).parse_args(list(words))
        for each in command.params:
            if (value := given.get(each.name)) is not None and not _STANDS_FOR.match(str(value)):
                each.process_value(context, value)
    except Exception as error:  # Typer's own, or Click's, depending on its version.
        return str(getattr(error, "message", "")) or repr(error)
    missing = [each.name for each in command.params if each.required and not each.envvar and not given.get(each.name)]
    if whole and missing:
        return f"{', '.join(missing)} is missing"
    return f"{left} is too much" if left else ""


def test_each_command_in_a_block_parses(command_line: Any) -> None:
    found = [(block.place, words) for block in BLOCKS if is_shell(block) for words in calls(block.text)]
    assert len(found) > 30
    assert [
        (place, " ".join(words), wrong)
        for place, words in found
        if words[0] not in OF_THE_SCRIPT and (wrong := wrong_with(command_line, words))
    ] == []


def is_shell(block: Block) -> bool:
    return block.language in {"", "bash", "sh", "shell", "console", "text"}


def test_each_command_in_a_sentence_exists_with_its_options(command_line: Any) -> None:
    found = [(page.name, words) for page in pages() for text in page.inline for words in calls(text)]
    assert len(found) > 30
    assert [
        (name, " ".join(words), wrong)
        for name, words in found
        if words[0] not in OF_THE_SCRIPT and (wrong := wrong_with(command_line, words, whole=False))
    ] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("kstream streams status orders --json   # it's fine", []),
        ("KSTREAM_CLUSTER=prod ./kstream streams stop \\\n  orders | tee log", []),
        ("kstream streams stahtus", ["there is no command stahtus"]),
        ("kstream --cluster prod streams status", []),
        ("kstream help streams stop", []),
        ("kstream --clutser prod streams status", ["there is no command --clutser"]),
        ("kstream streams stop", ["name is missing"]),
        ("kstream streams status one two", ["['two'] is too much"]),
        (
            "kstream leases recover /tmp --in-all many",
            ["Input should be a valid integer, unable to parse string as an integer"],
        ),
        ("kstream minicluster status|dawn --root DIR", ["there is no command dawn"]),
    ],
)
def test_a_command_that_does_not_parse_is_found(command_line: Any, text: str, wrong: list[str]) -> None:
    assert [told for words in calls(text) if (told := wrong_with(command_line, words))] == wrong
