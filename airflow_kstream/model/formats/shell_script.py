"""The variables that a shell script takes from its environment, as far as its text shows. Nothing is expanded or run.

What has a default in it (`${NAME:-value}`), what the script sets itself, and what only a single-quoted text or a
comment names, is not taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIRST_LINE = re.compile(r"#!\s*\S*(?:\s+(?:\S*/)?)?\S*sh\b")
# Without these: an escaped character, a single-quoted text, a comment. A double-quoted text keeps its quotes.
_SILENT = re.compile(r"""\\.|'[^']*'|(?:^|(?<=[\s;&|(]))\#[^\n]*|(?P<double>"(?:\\.|[^"\\])*")""", re.DOTALL)
# By convention names of an environment are in capitals, and a script's own are not.
_READ = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)(?!:?[-=+]|\w)|([A-Z][A-Z0-9_]*))")
_SET = re.compile(r"(?<![\w.$/{-])([A-Za-z_]\w*)\+?=|\b(?:for|read(?:\s+-\w+)*)\s+([A-Za-z_]\w*)")
_SOURCED = re.compile(r"(?:^|[;&|]|\bthen|\belse)[ \t]*(?:\.|source)[ \t]+([^\s;&|]+)", re.MULTILINE)
# What a shell sets itself.
_OF_THE_SHELL = re.compile(r"BASH\w*|FUNCNAME|HOSTNAME|HOSTTYPE|IFS|LINENO|MACHTYPE|OLDPWD|OSTYPE|PPID|PWD|RANDOM|UID")


@dataclass(frozen=True)
class ShellScript:
    """The variables that a script reads and sets, and the words that name what it sources, as they stand there."""

    reads: frozenset[str]
    sets: frozenset[str]
    sources: tuple[str, ...]


def is_shell_script(text: str) -> bool:
    return _FIRST_LINE.match(text) is not None


def shell_script(text: str) -> ShellScript:
    """Read a script of any shell of Bourne's family."""
    said = _SILENT.sub(lambda match: match["double"] or " ", text)
    reads = {name for match in _READ.finditer(said) if (name := match[1] or match[2])}
    named = frozenset(name for name in reads if not _OF_THE_SHELL.fullmatch(name))
    return ShellScript(named, frozenset(_assigned(said)), tuple(match[1] for match in _SOURCED.finditer(said)))


def _assigned(said: str) -> Iterator[str]:
    yield from (match[1] or match[2] for match in _SET.finditer(said))
