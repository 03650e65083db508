"""The words of the package, its tests' names and the README: plain English that nobody has to read twice."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("airflow_kstream", "benchmarks", "dags", "docs") for path in (ROOT / folder).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

# A habit, and what a native engineer writes instead.
HABITS = {
    r"\b(?:is|are|was|were|does|do|it|them|any|knows?|takes?|found) no more\b(?! than)": "no longer",
    r"\bany more\b": "any longer, or no longer",
    r"\banew\b": "again",
    r"\bbe it\b": "including, or whether",
    r"\bwhoever\b|\bwhosoever\b": "the program or person that",
    r"\b(?:he|his|him)\b": "it, or they",
    r"\basked (?:for|after)\b": "probed, requested, or looked up",
    r"\bis (?:told|said)\b|\bare (?:told|said)\b": "the subject that tells, in the active voice",
    r"\bnobody (?:is|was) asked\b": "no server is asked",
    r"\bof (?:which|whom) (?:nothing|nobody|the|it|one)\b": "a sentence with the subject first",
    r"\bthe bold\b": "use with care",
}
# Of texts alone: a test's name is a sentence without its subject.
OF_TEXTS = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|other|such|exception|\w+er than)[a-z]": "is not a",
    r"\bwere it\b": "even, or including",
    r"\bfor so (?:long|many)\b": "for this long, or long enough",
    r"(?:^|[.:]\s+)(?-i:Of) (?:an?|two|several|the)\b": "a sentence that begins with its subject",
}
# A docstring says what the function does, or what the class is. These words begin a relative clause.
NO_BEGINNINGS = re.compile(r"(?:What|Whether|Who|Whom|Whose|Where|Which|When|How|As whom|By whom|Of)\b")
LONGEST_TEST_NAME = 79
TEST = re.compile(r"\s*(?:async )?def (test_\w+)")
RAISE = re.compile(r"\bRaise (?:[A-Z]\w+)")


@dataclass(frozen=True)
class Words:
    """The words of a module with their lines: its docstrings, and all its strings and comments."""

    docstrings: tuple[tuple[int, ast.AST, str], ...]
    texts: tuple[tuple[int, str], ...]

    @cached_property
    def together(self) -> str:
        """Return the texts one below the other: what is not in here is in none of them."""
        return "\n".join(text for _, text in self.texts)


@cache
def words(path: Path) -> Words:
    source = path.read_text()
    nodes = tuple(ast.walk(ast.parse(source)))
    documented = [
        (getattr(node, "lineno", 1), node, ast.get_docstring(node))
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
    ]
    strings = [
        (node.lineno, node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    lines = enumerate(source.splitlines(), start=1)
    comments = [(number, line) for number, line in lines if line.lstrip().startswith("#")]
    return Words(tuple((line, node, text) for line, node, text in documented if text), (*strings, *comments))


def test_words_that_slow_a_reader_down_are_absent() -> None:
    """A failure says what to write instead."""
    habits = HABITS | OF_TEXTS
    any_habit = re.compile("|".join(habits), re.IGNORECASE)
    lines = [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for path in SOURCES
        if any_habit.search(words(path).together)
        for line, text in words(path).texts
    ]
    lines += [(page.name, page.read_text()) for page in PAGES]
    found = [
        f"{where}: write {instead}"
        for where, text in lines
        for habit, instead in habits.items()
        if re.search(habit, text, re.IGNORECASE)
    ]
    assert found == []


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for path in SOURCES
        for line, node, text in words(path).docstrings
        if not isinstance(node, ast.Module) and NO_BEGINNINGS.match(text)
    ]
    assert found == []


def test_a_docstring_says_which_errors_it_raises_in_one_form() -> None:
    """`Raises X: when`, so that a reader's eye finds it."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in SOURCES
        for line, _, text in words(path).docstrings
        if RAISE.search(text)
    ]
    assert found == []


def names_of_tests(path: Path) -> list[tuple[int, str]]:
    lines = enumerate(path.read_text().splitlines(), start=1)
    return [(number, match[1]) for number, line in lines if (match := TEST.match(line))]


def test_the_name_of_a_test_is_a_short_plain_sentence() -> None:
    patterns = [re.compile(habit) for habit in HABITS]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in TESTS
        for line, name in names_of_tests(path)
        if len(name) > LONGEST_TEST_NAME or any(pattern.search(name.replace("_", " ")) for pattern in patterns)
    ]
    assert found == []
