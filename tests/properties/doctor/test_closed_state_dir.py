"""Whatever the rights on a state_dir are: its commands lock nobody out who uses it, and let no stranger in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.clusters.state_dir_rights import AclEntry, StateDirRights, StateDirUse, StateDirUser
from airflow_kstream.policy.state_dir import Closing, closing, openness

OWNER, SUPERUSER = "supervisor", "hdfs"
NAMES = ("etl", "jane", "mallory", OWNER)
GROUPS = ("kstream", "supergroup")
RIGHTS = st.tuples(*(st.sampled_from([letter, "-"]) for letter in "rwx")).map("".join)


@dataclass(frozen=True)
class Folder:
    """A folder as HDFS keeps it (FSPermissionChecker): with an ACL, the mode's digit of the group is its mask."""

    mode: str
    group: str
    acl: dict[tuple[str, str], str]

    def allows(self, user: str, groups: frozenset[str], action: str) -> bool:
        return user == SUPERUSER or all(letter in self._rights(user, groups, action) for letter in action)

    def _rights(self, user: str, groups: frozenset[str], action: str) -> str:
        owners, mask, others = (symbols(digit) for digit in self.mask_and_mode)
        if user == OWNER:
            return owners
        if ("user", user) in self.acl:
            return common(self.acl["user", user], mask)
        matching = [rights for (kind, name), rights in self.acl.items() if kind == "group" and name in groups]
        if self.group in groups:
            matching.append(self.acl.get(("group", ""), mask))
        if matching:
            granting = [rights for rights in (common(each, mask) for each in matching) if set(action) <= set(rights)]
            return granting[0] if granting else ""
        return others

    @property
    def mask_and_mode(self) -> str:
        return self.mode[-3:]


def symbols(digit: str) -> str:
    return "".join(letter for letter, value in (("r", 4), ("w", 2), ("x", 1)) if int(digit) & value)


def common(first: str, second: str) -> str:
    return "".join(letter for letter in first if letter in second and letter != "-")


def made_of(rights: StateDirRights) -> Folder:
    return Folder(rights.permission, rights.group, {(entry.kind, entry.name): entry.rights for entry in rights.entries})


def after(before: Folder, plan: Closing) -> Folder:
    """Carry the plan out as `hdfs dfs -chmod` and `-setfacl -m` do: the latter makes a new mask of all entries."""
    if not plan.changes:
        return before
    if not plan.entries:
        return Folder(plan.permission, before.group, before.acl)
    given = {(entry.kind, entry.name): entry.rights for entry in plan.entries}
    acl = before.acl | {key: rights for key, rights in given.items() if key == ("group", "") or key[1]}
    mask = "".join(letter for letter in "rwx" if any(letter in rights for rights in acl.values()))
    digits = [given["user", ""], mask, given["other", ""]]
    return Folder(
        "1" + "".join(str(sum(4 >> "rwx".index(one) for one in each if one in "rwx")) for each in digits),
        before.group,
        acl,
    )


@dataclass(frozen=True)
class Situation:
    """The use of a state_dir, and the groups of everybody, of which HDFS tells nothing."""

    use: StateDirUse
    members: Mapping[str, frozenset[str]]

    @property
    def plan(self) -> Closing:
        return closing(self.use)

    @property
    def before(self) -> Folder:
        return made_of(self.use.rights)

    @property
    def afterwards(self) -> Folder:
        return after(self.before, self.plan)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    keys = draw(
        st.lists(
            st.sampled_from([("user", "etl"), ("user", "mallory"), ("group", "kstream"), ("group", "etl")]), unique=True
        )
    )
    named = [AclEntry(kind, name, draw(RIGHTS)) for kind, name in keys]
    entries = (*named, AclEntry("group", "", draw(RIGHTS))) if named else ()
    mode = (
        draw(st.sampled_from(["", "1"])) + "7" + draw(st.sampled_from("01234567")) + draw(st.sampled_from("01234567"))
    )
    rights = StateDirRights(
        "/kstream",
        OWNER,
        draw(st.sampled_from(GROUPS)),
        mode,
        entries,
        "supergroup",
        keeps_acls=bool(named) or draw(st.booleans()),
    )
    if draw(st.integers(0, 4)) == 0:
        rights = StateDirRights("/kstream", OWNER, "", "755", keeps_acls=draw(st.booleans()), exists=False)
    users = tuple(
        StateDirUser(name, ("a test",), creates, (f"orders.{name}",) if creates else ())
        for name in NAMES
        if name != "mallory" and draw(st.booleans())
        for creates in [draw(st.booleans())]
    )
    members = {name: draw(st.frozensets(st.sampled_from((*GROUPS, "etl")))) for name in NAMES}
    asked = {
        user.name: rights.exists and made_of(rights).allows(user.name, members[user.name], "wx")
        for user in users
        if draw(st.booleans())
    }
    return Situation(StateDirUse(rights, SUPERUSER, users, asked), members)


@given(situations())
def test_all_who_use_it_can_do_what_they_need(it: Situation) -> None:
    plan, folder = it.plan, it.afterwards
    for user in it.use.users:
        creates, enters = (folder.allows(user.name, it.members[user.name], action) for action in ("wx", "rx"))
        if user.creates:
            unasked = not plan.changes and user.name not in it.use.can_create
            assert creates or unasked or (plan.changes and user.name in plan.folders)
        elif it.use.rights.keeps_acls and plan.changes:
            assert enters


@given(situations())
def test_nobody_is_locked_out_who_could_enter_before(it: Situation) -> None:
    for name in NAMES:
        if it.before.allows(name, it.members[name], "rx"):
            assert it.afterwards.allows(name, it.members[name], "rx")


@given(situations())
def test_nobody_else_can_create_in_it_afterwards(it: Situation) -> None:
    """But by a right that somebody gave to them, or to a group, by name; and nobody gets one by the way."""
    folder, rights = it.afterwards, it.use.rights
    creating = {user.name for user in it.use.users if user.creates} | {OWNER}
    for name in set(NAMES) - creating:
        if folder.allows(name, it.members[name], "wx"):
            assert it.before.allows(name, it.members[name], "wx")
    assert not folder.allows("stranger", frozenset(), "wx")
    assert not folder.allows(
        "stranger", frozenset({"supergroup"}) - {rights.group if rights.group_is_chosen else ""}, "wx"
    )


@given(situations())
def test_what_was_closed_by_it_is_closed_and_needs_nothing_more(it: Situation) -> None:
    folder, before = it.afterwards, it.use.rights
    entries = tuple(AclEntry(kind, name, rights) for (kind, name), rights in folder.acl.items())
    rights = replace(before, permission=folder.mode, entries=entries, exists=True)
    assert openness(rights) == ()
    asked = {user.name: folder.allows(user.name, it.members[user.name], "wx") for user in it.use.users}
    if rights.keeps_acls and it.plan.changes:
        assert closing(StateDirUse(rights, SUPERUSER, it.use.users, asked)).commands == ()
