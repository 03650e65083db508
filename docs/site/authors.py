"""The table of who is believed for what: each cell is the answer of `airflow_kstream.policy.authors` itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_kstream.model.clusters.authors import Ground, Standing, Supervisors
from airflow_kstream.policy.authors import giving, may_declare, may_freeze, may_order, may_remember, standing
from docs.site.markdown import page, table

_USER = "the stream's user"
_SUPERVISORS = Supervisors("superuser", "owner", frozenset({"named"}))


@dataclass(frozen=True)
class Author:
    """An author as HDFS names it, and where it wrote: `closed` is a folder that only its owner can write in."""

    words: str
    name: str
    closed: bool = True
    proven: bool = True

    @property
    def ground(self) -> Ground:
        return Ground(_USER, self.closed)

    @property
    def users(self) -> frozenset[str]:
        return frozenset({_USER} if self.proven else ())


AUTHORS = (
    Author("HDFS's superuser", "superuser"),
    Author("the owner of `state_dir`", "owner"),
    Author("a user in the file `supervisors`", "named"),
    Author("the stream's own user", _USER),
    Author("another user, in a folder that was handed over", "former"),
    Author("another user, in a folder that others can write", "stranger", closed=False),
    Author("any user, while no server proves who the stream's is", "stranger", proven=False),
)
SAID: Mapping[str, Callable[[Author], Standing | bool]] = {
    "a claim, an end, evidence": lambda a: standing(a.name, _SUPERVISORS, a.ground, a.users),
    "an order on one stream": lambda a: may_order(a.name, _SUPERVISORS, a.users),
    "a freeze of all streams": lambda a: may_freeze(a.name, _SUPERVISORS),
    "a declaration to submit": lambda a: may_declare(a.name, _SUPERVISORS),
    "who owns a checkpoint": lambda a: giving(a.name, _USER, _SUPERVISORS, a.ground, a.users),
}
_WORDS: Mapping[Standing | bool, str] = {
    True: "yes",
    False: "no",
    Standing.MAY: "yes",
    Standing.FORMER: "as far as it is older than all claims of those who may speak",
    Standing.STRANGER: "no; it is reported once",
    Standing.NOT_PROVEN: "shown; it starts and blocks nothing",
}


def table_of_authors() -> str:
    """Return the table: authors below each other, those together whose words count alike."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for author in AUTHORS:
        alike.setdefault(tuple(_WORDS[may(author)] for may in SAID.values()), []).append(author.words)
    rows = (("; ".join(names), *answers) for answers, names in alike.items())
    return table(("HDFS's owner of the file", *SAID), rows) + _memory()


def _memory() -> str:
    """Return what counts of an author's own notes. Raises AssertionError: when another's count, too."""
    names = {author.name for author in AUTHORS}
    assert all(may_remember(one, other) is (one == other) for one in names for other in names)
    return "\nWhat a user wrote for itself, such as what was told or a journal of leases, counts for it alone.\n"


def page_of_authors() -> str:
    """Return the page."""
    return page(
        "Who is believed for what",
        "Only HDFS's owner of a file proves its author; a name inside a text proves nothing. Each cell is what "
        "`airflow_kstream/policy/authors.py` answered when this page was built.",
        table_of_authors(),
    )
