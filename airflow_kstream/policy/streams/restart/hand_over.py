"""How a stream's folder changes hands: what HDFS's superuser does, step by step, and what holds afterwards."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_kstream.model.clusters.authors import CLOSING, Ground, Supervisors
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.streams.contract import claim_file, newest_claim
from airflow_kstream.model.streams.generation import StreamId

# Of strangers' files, in one command.
_AT_ONCE = 20


@dataclass(frozen=True)
class HandOverFacts:
    """A stream's folder as it is, and who gets it. `owners` are its files with their owners, `acl` is whether it has
    one, and `former` are the users who ran the stream so far, as HDFS named them.

    `to` is the next user, and `living` are the stream's applications that live, with YARN's user of each.
    """

    stream: StreamId
    ground: Ground
    acl: bool
    owners: Mapping[str, str]
    supervisors: Supervisors
    former: frozenset[str]
    to: str
    living: Mapping[str, str] = field(default_factory=dict)

    @property
    def generation(self) -> int:
        return newest_claim(self.owners)

    @property
    def strangers(self) -> Mapping[str, str]:
        """Return the files of those who have nothing to do with the stream: in a folder that changed hands, they count.

        Where nobody proved who ran it so far, that is the owner of the folder.
        """
        honest = self.former or frozenset({self.ground.owner})
        may = {owner for owner in self.owners.values() if owner in self.supervisors} | honest | {self.to, ""}
        return {name: owner for name, owner in sorted(self.owners.items()) if owner not in may and name != CLOSING}


@dataclass(frozen=True)
class HandOver:
    """The next step of a hand-over, or that it is `done`. HDFS's superuser runs the commands, in their order."""

    words: tuple[str, ...]
    commands: tuple[str, ...] = ()
    done: bool = False


def hand_over(facts: HandOverFacts) -> HandOver:
    """Decide what has to be done next.

    The folder is closed before it is handed over: what others can add until then would count afterwards, and what the
    former user wrote counts only in a folder that is closed.
    """
    folder, strangers = facts.stream.folder, facts.strangers
    if not facts.ground.closed:
        why = f"others can write in {folder}. It is closed first, while nobody acts on the stream; then call this again"
        return HandOver((why, *_named(strangers)), tuple(_closing(facts)))
    if strangers:
        why = f"in {folder} lie files of others, which would count as soon as {facts.to} has it"
        return HandOver((why, *_named(strangers)), tuple(_removal(folder, strangers)))
    if facts.ground.owner != facts.to:
        why = (
            f"{folder} belongs to {facts.ground.owner}. Without -R: the owner of a claim tells whose its application "
            "is. Then call this again"
        )
        return HandOver((why,), (f"hdfs dfs -chown {shlex.quote(facts.to)} {shlex.quote(folder)}",))
    return HandOver(tuple(_done(facts)), done=True)


def _closing(facts: HandOverFacts) -> Iterator[str]:
    place = shlex.quote(facts.stream.folder)
    yield f"kstream streams hold {facts.stream.name} --reason {shlex.quote(f'hand-over to {facts.to}')}"
    if facts.acl:
        yield f"hdfs dfs -setfacl -b {place}"
    yield f"hdfs dfs -chmod 755 {place}"
    yield from _removal(facts.stream.folder, facts.strangers)


def _removal(folder: str, names: Collection[str]) -> Iterator[str]:
    if names:
        paths = " ".join(as_word(f"{folder}/{name}") for name in list(names)[:_AT_ONCE])
        yield f"hdfs dfs -rm -r {paths}"


def _named(strangers: Mapping[str, str]) -> Iterator[str]:
    if strangers:
        few = ", ".join(f"{name} ({owner})" for name, owner in list(strangers.items())[:_AT_ONCE])
        rest = f" and {len(strangers) - _AT_ONCE} more" if len(strangers) > _AT_ONCE else ""
        yield f"strangers' files: {few}{rest}"


def _done(facts: HandOverFacts) -> Iterator[str]:
    folder, number = facts.stream.folder, facts.generation
    yield (
        f"{folder} belongs to {facts.to}, and nobody else can write in it: what others wrote before {facts.to}'s first "
        "claim counts"
    )
    if not number:
        yield "nobody has claimed a generation yet"
        return
    yield f"generation {number} was claimed by {facts.owners[claim_file(number)]}"
    for app, user in sorted(facts.living.items()):
        yield f"{app} still runs, as {user}: generation {number + 1} follows once it is proven dead"
    if not facts.living:
        yield f"YARN has no living application of it: generation {number + 1} follows once its death is proven"
