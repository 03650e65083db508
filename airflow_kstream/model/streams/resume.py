"""Where a generation begins, of an engine whose job has to be told: the state that another one left, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_kstream.model.errors import InvalidInput


@dataclass(frozen=True)
class ResumePoint:
    """The state with which a generation begins, of an engine that has to be told; NOTHING is a fresh start.

    `path` is a folder on the cluster's default filesystem with a `_metadata`, `number` its checkpoint's. `made_by` is
    the generation that left it, None if a person named it. `drops_unmapped` is a person's word that state of operators
    which the job no longer has may be lost.
    """

    path: str = ""
    number: int = -1
    made_by: int | None = None
    drops_unmapped: bool = False

    @property
    def fresh(self) -> bool:
        return not self.path

    def __str__(self) -> str:
        return self.path or "nothing"


NOTHING = ResumePoint()


@dataclass(frozen=True)
class StartWord:
    """A person's word on where one generation starts, and no other one: fresh, or from a savepoint or checkpoint.

    An empty `path` of one that is not `fresh` says nothing of the place: it lets state be dropped alone.
    """

    generation: int
    path: str = ""
    number: int = -1
    fresh: bool = False
    drops_unmapped: bool = False

    @property
    def places(self) -> bool:
        """Return whether it says where the generation starts."""
        return self.fresh or bool(self.path)


def require_one_start(name: str, path: str, *, fresh: bool) -> None:
    """Raises InvalidInput: when a start of this stream is both fresh and from a state."""
    if path and fresh:
        raise InvalidInput("a start is fresh, or from a state; allowed is one of them", tried=f"start {name}")
