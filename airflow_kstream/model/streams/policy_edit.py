"""An edit of a stream's policies: what its declaration gives now, and what it gave before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from airflow_kstream.model.declared import written
from airflow_kstream.model.streams.persisted_spec import read_policies
from airflow_kstream.model.streams.spec_fingerprint import chosen
from airflow_kstream.model.streams.stream import POLICIES, StreamSpec

# A host whose copy of a declaration is older by more edits than these counts as one whose copy is newer.
_FORMER = 10

# Policies by their names, as the fields of a StreamSpec.
Policies = Mapping[str, Any]


@dataclass(frozen=True)
class PolicyEdit:
    """The policies that a declaration was found to give at `at`, as plain data without what is at its default.

    `former` are the marks of those that it gave before, the newest first. By them, and by no clock, a task
    tells whether its worker's copy of the declaration is older than this edit, or newer.
    """

    policies: Mapping[str, Any]
    at: datetime
    former: tuple[str, ...] = ()

    # Each look at each stream of a fleet asks.
    @cached_property
    def read(self) -> Policies:
        return read_policies(self.policies)

    @cached_property
    def mark(self) -> str:
        return mark_of(self.read)

    def replaces(self, ours: str | None, read: datetime | None = None) -> bool:
        """Return whether these hold in place of the policies with this mark that a task found declared at `read`, if
        that is known; None if it found none.

        They do where the task knew none, where the declaration gave its policies before, and where it was edited
        after the task read it.
        """
        if ours is None:
            return True
        return ours != self.mark and (ours in self.former or (read is not None and self.at > read))

    def to_json(self) -> dict[str, Any]:
        return {"policies": dict(self.policies), "at": self.at.isoformat(), "former": list(self.former)}

    @classmethod
    def from_json(cls, data: object) -> PolicyEdit | None:
        """Read what `to_json` wrote; None if it can't be read, because a watch goes on without it."""
        if not isinstance(data, Mapping) or not isinstance(data.get("policies"), Mapping):
            return None
        try:
            at = datetime.fromisoformat(data["at"])
            return cls(data["policies"], at, tuple(map(str, data["former"]))) if at.tzinfo else None
        except (ValueError, TypeError, KeyError):
            return None


def edited(before: PolicyEdit | None, policies: Policies, now: datetime) -> PolicyEdit:
    """Return the edit that follows `before`; without one, the declaration gave no policies before."""
    marks = (before.mark, *before.former) if before else (UNEDITED,)
    ours = mark_of(policies)
    former = [mark for mark in dict.fromkeys(marks) if mark != ours]
    return PolicyEdit(_choices(policies), now, tuple(former[:_FORMER]))


def policies_of(spec: StreamSpec) -> Policies:
    """Return the policies as they are read of a declaration: 4 and 4.0 are one number there."""
    return read_policies({name: written(getattr(spec, name)) for name in POLICIES})


def mark_of(policies: Policies) -> str:
    """Return text that is equal for equal policies, and for a later version that adds a field with a default."""
    return hashlib.sha256(json.dumps(_choices(policies), sort_keys=True).encode()).hexdigest()[:8]


def _choices(policies: Policies) -> dict[str, Any]:
    return {name: choice for name, policy in policies.items() if (choice := chosen(policy))}


# The mark of a declaration that gives no policies.
UNEDITED = mark_of(read_policies({}))
