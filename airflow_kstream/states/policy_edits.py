"""The places of edited policies in Airflow's asset state store: a row of each stream, and one of its cluster.

A thousand triggers wait for an edit. So the cluster's row has a mark for each stream, and who knows policies with this
mark reads no other row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The keys of a stream's edit and of its cluster's marks.
EDIT, MARKS = "policies", "policy_marks"


@dataclass(frozen=True)
class Marks:
    """The marks of the stored policies, by their streams, and the digest of all declarations that they were read from.

    The digest is empty where another look at the same declarations could bring more.
    """

    streams: Mapping[str, str] = field(default_factory=dict)
    declarations: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"streams": dict(self.streams), "declarations": self.declarations}

    @classmethod
    def from_json(cls, data: object) -> Marks:
        """Read what `to_json` wrote; nothing is stored, as far as is known, where that can't be read."""
        streams = data.get("streams") if isinstance(data, Mapping) else None
        if not isinstance(data, Mapping) or not isinstance(streams, Mapping):
            return cls()
        return cls({str(name): str(mark) for name, mark in streams.items()}, str(data.get("declarations") or ""))
