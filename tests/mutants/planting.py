"""The mutants as data, and how one is planted in a copy of the checkout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
_DATA = Path(__file__).parent


class BrokenMutant(Exception):
    """A mutant that can't be planted or tried: its data must follow the code."""


@dataclass(frozen=True)
class Mutant:
    """A defect: `new` in place of `old`, which occurs exactly once in the file.

    `caught_by` are pytest's arguments. `equivalent` argues why no test can fail, and is empty otherwise.
    """

    name: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...] = ()
    equivalent: str = ""

    def planted_in(self, text: str) -> str:
        """Return the text with the defect. Raises BrokenMutant: when its place is gone, or the result is no Python."""
        if (found := text.count(self.old)) != 1:
            raise BrokenMutant(f"{self.name!r}: its old text occurs {found} times in {self.file}, and not once")
        mutated = text.replace(self.old, self.new)
        try:
            compile(mutated, self.file, "exec")
        except SyntaxError as error:
            raise BrokenMutant(f"{self.name!r}: {self.file} does not compile with it: {error}") from error
        return mutated


def all_mutants() -> tuple[Mutant, ...]:
    """Read every mutant, by subject."""
    files = sorted(_DATA.glob("*.yaml"))
    return tuple(_mutant(entry) for file in files for entry in yaml.load(file.read_text(), yaml.CSafeLoader))


def _mutant(entry: dict[str, str]) -> Mutant:
    return Mutant(**{**entry, "caught_by": tuple(entry.get("caught_by", "").split())})  # type: ignore[arg-type]


@contextmanager
def planted(mutant: Mutant, checkout: Path) -> Iterator[None]:
    """Plant one mutant in this copy of the checkout, and take it out again."""
    file = checkout / mutant.file
    text = file.read_text()
    try:
        _write(file, mutant.planted_in(text))
        yield
    finally:
        _write(file, text)


def _write(file: Path, text: str) -> None:
    """Write the source without its byte code, which Python tells apart only by size and whole seconds."""
    file.write_text(text)
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
