"""Who may write in a state_dir, as HDFS tells it, and who has to: its supervisors and the users of its streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StateDirUser:
    """Somebody who uses a state_dir, by HDFS's short name. `whys` say what for.

    `creates` is whether they create folders in it, and `folders` are those that are not there yet. Others only enter
    it, to their own that exist.
    """

    name: str
    whys: tuple[str, ...]
    creates: bool = False
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class AclEntry:
    """An entry of an ACL: of a `kind` (user, group, mask, other), for a name or, without one, for the owning one."""

    kind: str
    name: str
    rights: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}:{self.rights}"

    def within(self, mask: str) -> AclEntry:
        """Return the entry as far as the mask lets it count."""
        return AclEntry(self.kind, self.name, common(self.rights, mask))

    @property
    def creates(self) -> bool:
        """Return whether it lets somebody create something in a folder."""
        return "w" in self.rights and "x" in self.rights


def acl_entries(texts: Iterable[str]) -> tuple[AclEntry, ...]:
    """Read the entries of an ACL's status; those that a new folder inherits give no right on this one."""
    parts = (text.split(":") for text in texts)
    return tuple(AclEntry(*each) for each in parts if len(each) == 3)


def common(first: str, second: str) -> str:
    """Return the rights that are in both, such as `r-x` of `rwx` and `r-x`."""
    return "".join(one if one == other else "-" for one, other in zip(first, second, strict=True))


def symbols(digit: str) -> str:
    """Return the rights of an octal digit: `rwx` of 7."""
    bits = int(digit)
    return "".join(letter if bits & value else "-" for letter, value in (("r", 4), ("w", 2), ("x", 1)))


@dataclass(frozen=True)
class StateDirRights:
    """The rights on a state_dir. `entries` are those of its ACL, without which its mode is all there is.

    `parents_group` is the group of the folder above: a new folder has that one, unless somebody chooses another.
    `keeps_acls` is whether this NameNode does (dfs.namenode.acls.enabled). One that doesn't exist has those that it
    will be made with.
    """

    path: str
    owner: str
    group: str
    permission: str
    entries: tuple[AclEntry, ...] = ()
    parents_group: str = ""
    keeps_acls: bool = True
    exists: bool = True

    @property
    def sticky(self) -> bool:
        return self.permission[:-3] == "1"

    @property
    def others(self) -> AclEntry:
        """Return what everybody may."""
        return AclEntry("other", "", symbols(self.permission[-1]))

    @property
    def of_group(self) -> AclEntry:
        """Return what the members of its group may. With an ACL, the mode's digit of the group is the ACL's mask."""
        digit = symbols(self.permission[-2])
        own = next((entry for entry in self.entries if (entry.kind, entry.name) == ("group", "")), None)
        return own.within(digit) if own else AclEntry("group", "", digit)

    @property
    def named(self) -> tuple[AclEntry, ...]:
        """Return the entries of users and groups by name, as far as they count."""
        mask = symbols(self.permission[-2])
        return tuple(entry.within(mask) for entry in self.entries if entry.name)

    @property
    def group_is_chosen(self) -> bool:
        """Return whether somebody gave it a group of its own."""
        return self.group != self.parents_group


@dataclass(frozen=True)
class StateDirUse:
    """The rights on a state_dir, and who uses it, each once.

    `can_create` is whom HDFS told whether they can create in it now; None, as no entry, if that is not known.
    """

    rights: StateDirRights
    superuser: str
    users: tuple[StateDirUser, ...] = ()
    can_create: Mapping[str, bool | None] = field(default_factory=dict)
