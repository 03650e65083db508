"""How a state_dir is made closed: by commands that lock nobody out who uses it, and let nobody else create in it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from airflow_kstream.model.authors import Supervisors
from airflow_kstream.model.orders import ALL_STREAMS, OrderFile
from airflow_kstream.model.own_folders import FolderKind, folder_name
from airflow_kstream.model.state_dir_rights import AclEntry, Need, StateDirRights, StateDirUse, StateDirUser

_EVERYTHING, _ENTER = "rwx", "r-x"


@dataclass(frozen=True)
class Closing:
    """The changes that make a state_dir closed: its mode, the entries of its ACL if it needs one, and folders for those
    whom neither can let in.

    `entries` are all those to be set in one request, so that at no moment somebody is locked out. `folders` are by the
    user for whom HDFS's superuser has to make them. `changes` is whether anything has to be done.
    """

    path: str
    permission: str
    sets_sticky: bool
    entries: tuple[AclEntry, ...]
    folders: tuple[tuple[str, tuple[str, ...]], ...]
    changes: bool

    @property
    def acl(self) -> str:
        """Return the entries as HDFS takes them."""
        return ",".join(map(str, self.entries))

    @property
    def only_in_own_folders(self) -> tuple[str, ...]:
        """Return who will be able to create nothing beside the folders that are made for them."""
        return tuple(user for user, _ in self.folders)

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands in their order; none if nothing has to be done."""
        return tuple(self._commands()) if self.changes else ()

    def _commands(self) -> Iterator[str]:
        place = shlex.quote(self.path)
        for user, names in self.folders:
            folders = " ".join(shlex.quote(f"{self.path}/{name}") for name in names)
            yield f"hdfs dfs -mkdir -p {folders}"
            yield f"hdfs dfs -chmod 755 {folders}"
            yield f"hdfs dfs -chown {shlex.quote(user)} {folders}"
        if not self.entries:
            yield f"hdfs dfs -chmod {self.permission} {place}"
            return
        if self.sets_sticky:
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
    """Decide how a state_dir is closed. What others may read stays as it is.

    Nothing is changed in one that is closed, unless it refuses somebody who uses it. All who use it can do afterwards
    what they need: by the right of a group that somebody chose, where HDFS told that they have it; else by an entry of
    their own; and where HDFS keeps no ACLs, in folders that are made for them.
    """
    rights = use.rights
    of_group = _of_group(rights)
    entries, folders = _for_users(use, of_group) if rights.keeps_acls else ((), tuple(_for_others(use, of_group)))
    new = {(entry.kind, entry.name) for entry in entries}
    named = (*(entry for entry in rights.named if (entry.kind, entry.name) not in new), *entries)
    digits = "".join(_digit(each) for each in (_EVERYTHING, of_group, _without_writing(rights.others.rights)))
    changes = bool(openness(rights) or (_refused(use) and (entries or folders)))
    bases = (
        AclEntry("user", "", _EVERYTHING),
        AclEntry("group", "", of_group),
        AclEntry("other", "", _without_writing(rights.others.rights)),
    )
    return Closing(rights.path, f"1{digits}", not rights.sticky, (*bases, *named) if named else (), folders, changes)


def _refused(use: StateDirUse) -> bool:
    """Return whether HDFS said of somebody that they can't create in it. Who could not be asked may have the right."""
    return any(user.need is Need.CREATE and use.can_create.get(user.name) is False for user in _others(use))


def _of_group(rights: StateDirRights) -> str:
    """Return what the members of its group may: nobody chose those of a group from the folder above."""
    own = rights.of_group.rights
    return own if rights.group_is_chosen else _without_writing(own)


def _for_users(use: StateDirUse, of_group: str) -> tuple[tuple[AclEntry, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    wanted = [(user, _wanted(use, user, of_group)) for user in _others(use)]
    return tuple(AclEntry("user", user.name, rights) for user, rights in wanted if rights), ()


def _wanted(use: StateDirUse, user: StateDirUser, of_group: str) -> str:
    """Return the rights that the user's own entry has to give; empty if none is needed."""
    rights = use.rights
    own = next((entry.rights for entry in rights.named if (entry.kind, entry.name) == ("user", user.name)), "")
    if user.need is Need.ENTER:
        # Nobody knows whether it is a member of the group, for whom the rights of others don't count.
        enters = own or _common(of_group, rights.others.rights)
        return "" if _has(enters, _ENTER) else _ENTER
    return "" if _has(own, _EVERYTHING) or _keeps_creating(use, user) else _EVERYTHING


def _keeps_creating(use: StateDirUse, user: StateDirUser) -> bool:
    """Return whether HDFS said that the user can create in it, by a right that nobody takes away."""
    rights = use.rights
    taken = rights.others.creates or (rights.of_group.creates and not rights.group_is_chosen)
    return use.can_create.get(user.name, False) and not taken


def _for_others(use: StateDirUse, of_group: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the folders to be made, by user. Without ACLs nobody can be given a right of their own."""
    for user in _others(use):
        if user.need is Need.CREATE and user.folders and not _keeps_creating(use, user):
            yield user.name, user.folders


def _others(use: StateDirUse) -> list[StateDirUser]:
    """Return who needs a right beside those of the owner and of HDFS's superuser, each once, with the greater need."""
    users: dict[str, StateDirUser] = {}
    for user in sorted(use.users, key=lambda user: (user.name, user.need)):
        if user.name and user.name not in (use.rights.owner, use.superuser):
            users.setdefault(user.name, user)
    return list(users.values())


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


def subject_name(order: OrderFile) -> str:
    """Return the name of the stream that an order is on."""
    return order.subject.rpartition("-")[0] or order.subject


def order_words(order: OrderFile) -> str:
    """Return what is known of an order that nobody reads."""
    about = "on all streams, a freeze or its end," if order.subject == ALL_STREAMS else f"on {subject_name(order)}"
    return f"one {about} by {order.author} of {order.at:%Y-%m-%d %H:%M} UTC"


def repeating(order: OrderFile) -> str:
    """Return the command that repeats an order if it was a stop, or a freeze."""
    if order.subject == ALL_STREAMS:
        return "`kstream streams freeze`"
    return f"`kstream streams stop {subject_name(order)}` (or hold)"


def _has(rights: str, wanted: str) -> bool:
    return all(right in rights for right in wanted if right != "-")


def _common(first: str, second: str) -> str:
    return "".join(one if one == other else "-" for one, other in zip(first, second, strict=True))


def _without_writing(rights: str) -> str:
    return rights.replace("w", "-")


def _digit(rights: str) -> str:
    return str(sum(value for letter, value in zip("rwx", (4, 2, 1), strict=True) if letter in rights))
