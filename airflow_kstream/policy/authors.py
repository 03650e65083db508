"""May this author say this here? The one place that decides it, for every reader of a state_dir.

docs/security.md has the same in words. Only HDFS's owner of a file proves its author: names inside texts, principals
that rules of auth_to_local could map to anybody, and the modes of folders prove nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airflow_kstream.model.clusters.authors import CLOSING, AuthoredFiles, Ground, Standing, Supervisors
from airflow_kstream.model.streams.contract import claim_file, claims, newest_claim, number_in


def standing(author: str, supervisors: Supervisors, ground: Ground | None, users: Collection[str]) -> Standing:
    """Return what the author of a file in a stream's folder counts there.

    `users` are the short names that HDFS gave this stream's user, none if nobody could prove one. `ground` is the
    stream's folder, None if it was not looked at. Files of a server that names no owners count.
    """
    if not author or author in supervisors or author in users:
        return Standing.MAY
    if not users:
        return Standing.NOT_PROVEN
    # Handed over by the superuser's chown: what lies in it was written before, or by its owner.
    handed_over = ground is not None and ground.closed and (ground.owner in users or ground.owner in supervisors)
    return Standing.FORMER if handed_over else Standing.STRANGER


def sorted_by_author(
    owners: Mapping[str, str], supervisors: Supervisors, ground: Ground | None, users: Collection[str]
) -> AuthoredFiles:
    """Sort the files of a stream's folder by what their authors count.

    Where the stream's user is not proven, the owner of the folder passes for it, and nobody is called a stranger. A
    supervisor that wrote in its own folder is the stream's user. What may be a former user's counts as far as it is
    older than all claims of those who may speak: a folder that was open once, and that somebody closed by hand, may
    hold what a stranger left.
    """
    if ground and ground.owner in supervisors and ground.owner in owners.values():
        users = {*users, ground.owner}
    if ground and CLOSING in owners and (not users or owners[CLOSING] in users):
        ground = replace(ground, closed=False)
    standings = {author: standing(author, supervisors, ground, users) for author in set(owners.values())}
    passes = {author for author in standings if ground is None or ground.closed or author == ground.owner}
    counting = {author for author, found in standings.items() if found is Standing.MAY} | (set() if users else passes)
    first = min(claims(name for name, owner in owners.items() if owner in counting), default=None)

    def is_former(name: str, owner: str) -> bool:
        generation = number_in(name)
        older = first is None or (generation is not None and generation < first)
        return standings[owner] is Standing.FORMER and older

    counted = {name: owner for name, owner in owners.items() if owner in counting or is_former(name, owner)}
    strange = {author for author, found in standings.items() if found in {Standing.STRANGER, Standing.FORMER}}
    strangers = {name: owner for name, owner in owners.items() if owner in strange and name not in counted}
    return AuthoredFiles(counted, strangers, frozenset(users), ground.owner if ground else "")


def needs_ground(owners: Mapping[str, str], supervisors: Supervisors, users: Collection[str]) -> bool:
    """Return whether the folder itself has to be looked at: somebody wrote in it who is neither."""
    return any(owner and owner not in supervisors and owner not in users for owner in owners.values())


def present_user(counted: Mapping[str, str], ground: Ground | None) -> str:
    """Return the one user whose orders count in a stream beside the supervisors': who owns its folder, and made its
    newest claim.

    Empty before the first claim, and while the stream is handed over: what its former user ordered holds until the new
    one's first claim, which repeats it if need be.
    """
    newest = counted.get(claim_file(newest_claim(counted)), "")
    return newest if ground is not None and newest == ground.owner else ""


def may_order(author: str, supervisors: Supervisors, users: Collection[str]) -> bool:
    """Return whether this author's words on one stream count: start, stop, restart, hold."""
    return author in supervisors or author in users


def giving(
    author: str, reader: str, supervisors: Supervisors, ground: Ground | None, users: Collection[str]
) -> Standing:
    """Return what an author counts who gives a checkpoint to a stream, or takes it back, in the checkpoint's record.

    The authors are those of the stream's folder, and the `reader`, whose own entries count for the reader alone;
    `ground` is the record's folder. An entry that only refuses needs no author who may speak.
    """
    found = Standing.MAY if author == reader else standing(author, supervisors, ground, users)
    return Standing.MAY if found is Standing.FORMER else found


def may_freeze(author: str, supervisors: Supervisors) -> bool:
    """Return whether this author's words on all streams of the state_dir count."""
    return author in supervisors


def may_declare(author: str, supervisors: Supervisors) -> bool:
    """Return whether this author's copy of a declaration may be submitted."""
    return author in supervisors


def may_remember(author: str, user: str) -> bool:
    """Return whether what this author wrote down, of leases or of what was told, counts for this user: only their own.

    Files of a server that names no owners count.
    """
    return author in ("", user)
