"""What a deferral hands on: from the worker to the trigger, and from one trigger to the next through the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from airflow_kstream.model.clusters.safe_mode import SafeMode
from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.streams.looks import NOWHERE, Reached
from airflow_kstream.model.streams.policy_edit import PolicyEdit
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.policy.streams.ends.environment import refused, tells_safe_mode
from airflow_kstream.policy.streams.pulse.heartbeat import CONFIRMS
from airflow_kstream.policy.streams.restart.blocked_restart import BlockedRestart
from airflow_kstream.policy.streams.restart.looks import furthest


@dataclass(frozen=True)
class Memory:
    """The last known facts about a stream. A trigger of an earlier version carries none, one of a later version more.

    `plan` is the start of the restart window, `blind_since` the begin of a blindness that has woken the task `wakings`
    times, `word` the time of the person's last word, `stopped` whether the stream was seen stopped. `reached` are the
    furthest positions that were seen: a checkpoint that is restored later shows older ones. `ledger` is what was told
    of the stream. `doubt` is why nothing can follow generation `doubted`, the running one if that is 0: only the task
    sees who owns a checkpoint, or that the stream is declared twice. `stall` is the batch that the task is to examine.
    For the batch that was `examined` last it is not woken again before `examine_at`. The task looked, and read its
    declaration, at `declared`; `edit` is the last edit of the policies that the trigger read. `foretold` is what the
    doctor expected for the running generation when the task last acted. `safe_mode` is when HDFS last refused a look
    for it, None if it never did.
    """

    plan: datetime | None = None
    blind_since: datetime | None = None
    wakings: int = 0
    word: datetime | None = None
    stopped: bool = False
    blocked: BlockedRestart | None = None
    reached: Reached = NOWHERE
    ledger: Ledger = field(default_factory=Ledger)
    doubt: str = ""
    doubted: int = 0
    stall: Stall | None = None
    examine_at: datetime | None = None
    examined: Stall | None = None
    declared: datetime | None = None
    edit: PolicyEdit | None = None
    foretold: tuple[str, ...] = ()
    safe_mode: SafeMode | None = None

    def saw(self, reached: Reached) -> Memory:
        """Return what is known after one more look; a newer generation may have started from an older position."""
        if not reached.concerns(self.reached.generation, self.reached.claim):
            return replace(self, reached=reached)
        positions = furthest(self.reached.positions, reached.positions)
        return replace(self, reached=replace(reached, positions=positions))

    def recalls(self, stored: Reached) -> Memory:
        """Return what is known beside what a row says that an earlier triggerer saw before it died.

        Anybody who may edit assets can write a row. So it adds to what is known of the same generation, and replaces
        and removes nothing: it can make a start ask a person, and allow none.
        """
        known = self.reached
        if known == NOWHERE:
            return replace(self, reached=stored)
        if not stored.positions or not stored.concerns(known.generation, known.claim):
            return self
        return replace(self, reached=replace(known, positions=furthest(known.positions, stored.positions)))

    def sees(self, generation: int) -> Memory:
        """Return what is known beside this generation: a doubt concerns the one that ran when the task looked."""
        if not self.doubt or self.doubted not in {0, generation}:
            return replace(self, doubt="", doubted=0)
        return replace(self, doubted=generation)

    def examines(self, stall: Stall, now: datetime) -> Memory:
        """Return what is known once the task is woken to examine a batch; the next time it waits for longer."""
        return replace(self, stall=stall, examined=stall, examine_at=now + stall.lasts * CONFIRMS)

    def may_examine(self, stall: Stall, now: datetime) -> bool:
        """Return whether the task may be woken to examine this batch now."""
        again = self.examined is not None and self.examined.is_same(stall)
        return not again or self.examine_at is None or now >= self.examine_at

    def failed(self, words: str, now: datetime) -> Memory:
        """Return what is known after a look that failed in these words."""
        return replace(self, safe_mode=refused(self.safe_mode, now)) if tells_safe_mode(words) else self

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601."""
        blocked = self.blocked
        return {
            "plan": _written(self.plan),
            "blind_since": _written(self.blind_since),
            "wakings": self.wakings,
            "word": _written(self.word),
            "stopped": self.stopped,
            "told": self.ledger.to_json(),
            "doubt": self.doubt,
            "doubted": self.doubted,
            "blocked": blocked
            and {
                "since": _written(blocked.since),
                "tries": blocked.tries,
                "retry_at": _written(blocked.retry_at),
                "word": _written(blocked.word),
            },
            "reached": self.reached.to_json(),
            "stall": self.stall and self.stall.to_json(),
            "examine_at": _written(self.examine_at),
            "examined": self.examined and self.examined.to_json(),
            "declared": _written(self.declared),
            "edit": self.edit and self.edit.to_json(),
            "foretold": list(self.foretold),
            "safe_mode": self.safe_mode and self.safe_mode.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> Memory:
        """Read what `to_json` wrote; what can't be read is forgotten, because a watch without it goes on."""
        if not isinstance(data, Mapping):
            return cls()
        try:
            return cls(
                plan=_read(data.get("plan")),
                blind_since=_read(data.get("blind_since")),
                wakings=int(data.get("wakings") or 0),
                word=_read(data.get("word")),
                stopped=bool(data.get("stopped")),
                blocked=_blocked(data.get("blocked")),
                reached=Reached.from_json(data.get("reached")),
                ledger=Ledger.from_json(data.get("told")),
                doubt=str(data.get("doubt") or ""),
                doubted=int(data.get("doubted") or 0),
                stall=Stall.from_json(data.get("stall")),
                examine_at=_read(data.get("examine_at")),
                examined=Stall.from_json(data.get("examined")),
                declared=_read(data.get("declared")),
                edit=PolicyEdit.from_json(data.get("edit")),
                foretold=tuple(map(str, data.get("foretold") or ())),
                safe_mode=SafeMode.from_json(data.get("safe_mode")),
            )
        except (ValueError, TypeError):
            return cls()


def _blocked(data: object) -> BlockedRestart | None:
    if not isinstance(data, Mapping):
        return None
    since, retry_at = _read(data.get("since")), _read(data.get("retry_at"))
    if since is None or retry_at is None:
        return None
    return BlockedRestart(since, int(data.get("tries") or 0), retry_at, _read(data.get("word")))


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))
