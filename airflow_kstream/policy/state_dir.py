"""How a state_dir is made closed: by commands that lock nobody out who uses it, and let nobody else create in it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_kstream.model.clusters.authors import FolderKind, Supervisors, folder_name
from airflow_kstream.model.clusters.state_dir_rights import AclEntry, StateDirRights, StateDirUse, StateDirUser, common

_EVERYTHING, _ENTER = "rwx", "r-x"


@dataclass(frozen=True)
class Closing:
    """The changes that make a state_dir closed: its mode, the entries of its ACL if it needs one, and folders for those
    whom neither can let in.

    `entries` are all those to be set in one request, so that at no moment somebody is locked out. `folders` are by the
    user for whom HDFS's superuser has to make them. `changes` is whether anything has to be done.
    """

    rights: StateDirRights
    permission: str
    entries: tuple[AclEntry, ...]
    folders: Mapping[str, tuple[str, ...]]
    changes: bool

    @property
    def acl(self) -> str:
        """Return the entries as HDFS takes them."""
        return ",".join(map(str, self.entries))

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands in their order; none if nothing has to be done."""
        return tuple(self._commands()) if self.changes else ()

    def _commands(self) -> Iterator[str]:
        path, place = self.rights.path, shlex.quote(self.rights.path)
        if not self.rights.exists:
            yield f"hdfs dfs -mkdir -p {place}"
            yield f"hdfs dfs -chown {shlex.quote(self.rights.owner)} {place}"
        for user, names in self.folders.items():
            folders = " ".join(shlex.quote(f"{path}/{name}") for name in names)
            yield f"hdfs dfs -mkdir -p {folders}"
            for mode, of_mode in _by_mode(names).items():
                paths = " ".join(shlex.quote(f"{path}/{name}") for name in of_mode)
                yield f"hdfs dfs -chmod {mode} {paths}"
            yield f"hdfs dfs -chown {shlex.quote(user)} {folders}"
        if not self.entries:
            yield f"hdfs dfs -chmod {self.permission} {place}"
            return
        if not self.rights.sticky:
            yield f"hdfs dfs -chmod +t {place}"
        yield f"hdfs dfs -setfacl -m {shlex.quote(self.acl)} {place}"


def openness(rights: StateDirRights) -> tuple[str, ...]:
    """Return why it is open to those who have no business in it, in words; nothing if it is closed."""
    return tuple(_openness(rights))


def _openness(rights: StateDirRights) -> Iterator[str]:
    if rights.others.creates:
        yield "everybody may create in it"
    elif rights.of_group.creates and not rights.group_is_chosen:
        yield (
            f"the members of {rights.group} may create in it, a group that it has from the folder above: nobody chose "
            "them"
        )
    several = (rights.others, rights.of_group, *rights.named)
    if not rights.sticky and any(entry.creates for entry in several):
        yield "who may create in it may also delete and rename what is another's: it has no sticky bit"


def closing(use: StateDirUse) -> Closing:
    """Decide how a state_dir is made, or closed. What others may read stays as it is.

    Nothing is changed in one that is closed, unless it refuses somebody who uses it. All who use it can do afterwards
    what they need: by the right of a group that somebody chose, where HDFS told that they have it; else by an entry of
    their own; and where HDFS keeps no ACLs, in folders that are made for them.
    """
    rights, users = use.rights, [user for user in use.users if user.name not in ("", use.rights.owner, use.superuser)]
    of_group, others = _of_group(rights), _without_writing(rights.others.rights)
    new: dict[str, AclEntry] = {}
    folders: dict[str, tuple[str, ...]] = {}
    for user in users:
        if not rights.keeps_acls and user.folders and not _keeps_creating(use, user):
            folders[user.name] = user.folders
        elif rights.keeps_acls and (missing := _missing(use, user, of_group, others)):
            new[user.name] = AclEntry("user", user.name, missing)
    kept = (entry for entry in rights.named if entry.kind != "user" or entry.name not in new)
    named = (*kept, *new.values())
    bases = (AclEntry("user", "", _EVERYTHING), AclEntry("group", "", of_group), AclEntry("other", "", others))
    # Who could not be asked may have the right.
    refuses = any(user.creates and use.can_create.get(user.name) is False for user in users)
    changes = not rights.exists or bool(openness(rights)) or bool(refuses and (new or folders))
    permission = "1" + "".join(_digit(entry.rights) for entry in bases)
    return Closing(rights, permission, (*bases, *named) if named else (), folders, changes)


def _by_mode(names: Iterable[str]) -> Mapping[str, list[str]]:
    modes = {kind.value: kind.mode for kind in FolderKind}
    found: dict[str, list[str]] = {}
    for name in names:
        # A stream's folder has no kind.
        found.setdefault(modes.get(name.partition(".")[0], "755"), []).append(name)
    return found


def _of_group(rights: StateDirRights) -> str:
    """Return what the members of its group may: nobody chose those of a group from the folder above."""
    own = rights.of_group.rights
    return own if rights.group_is_chosen else _without_writing(own)


def _missing(use: StateDirUse, user: StateDirUser, of_group: str, others: str) -> str:
    """Return the rights that the user's own entry has to give; empty if none is needed."""
    entries = use.rights.named
    own = next((entry.rights for entry in entries if (entry.kind, entry.name) == ("user", user.name)), "")
    if user.creates:
        return "" if own == _EVERYTHING or _keeps_creating(use, user) else _EVERYTHING
    # Nobody knows whether it is a member of the group, for whom the rights of others don't count.
    enters = own or common(of_group, others)
    return "" if common(enters, _ENTER) == _ENTER else _ENTER


def _keeps_creating(use: StateDirUse, user: StateDirUser) -> bool:
    """Return whether HDFS said that the user can create in it, by a right that nobody takes away."""
    rights = use.rights
    taken = rights.others.creates or (rights.of_group.creates and not rights.group_is_chosen)
    return use.can_create.get(user.name) is True and not taken


def strange_entries(
    owners: Mapping[str, str], supervisors: Supervisors, users: Mapping[str, Collection[str]]
) -> Mapping[str, str]:
    """Return what lies in a state_dir and belongs to nobody who has any business there, with its owner.

    `owners` are those of its entries, and `users` the proven users of the streams that have a folder, by the folder's
    name: none of a stream whose user is not known. Then the folder's owner passes for that one, and nobody is
    called a stranger for it. A lease journal of one's own is nobody else's business.
    """
    passing = {owners[folder] for folder, proven in users.items() if not proven and folder in owners}
    known = passing.union(*users.values())

    def is_strange(name: str, owner: str) -> bool:
        if not owner or owner in supervisors:
            return False
        if users.get(name):
            return owner not in users[name]
        return owner not in known and name != folder_name(FolderKind.LEASES, owner)

    return {name: owner for name, owner in sorted(owners.items()) if is_strange(name, owner)}


def is_readable_by_all(permission: str) -> bool:
    """Return whether everybody may read a file of this octal mode; of one without a mode nobody can tell."""
    return not permission or permission[-1] in "4567"


def few(words: Iterable[str], most: int = 5, between: str = ", ") -> str:
    """Return the first of these words, and how many more there are."""
    words = list(words)
    rest = f" and {len(words) - most} more" if len(words) > most else ""
    return between.join(words[:most]) + rest


def _without_writing(rights: str) -> str:
    return rights.replace("w", "-")


def _digit(rights: str) -> str:
    return str(sum(value for letter, value in zip("rwx", (4, 2, 1), strict=True) if letter in rights))
