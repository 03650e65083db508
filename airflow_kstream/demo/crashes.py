"""Two crashes at the worst moments: shortly before a planned restart, and between claim and adoption."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.history import History, Life
from airflow_kstream.demo.promises import Promise
from airflow_kstream.demo.supervisor import ProcessSupervisor

_BEFORE_PLAN = timedelta(seconds=20)
_VICTIMS = ("triggerer", "scheduler")


@dataclass
class Crashes:
    """Crashes of the triggerer and the scheduler, with all their children; the supervisor respawns both."""

    supervisor: ProcessSupervisor
    console: DemoConsole
    struck: dict[str, int] = field(default_factory=dict)

    def strike(self, history: History, now: datetime) -> None:
        """Crash at each of the two moments once, not in the same restart."""
        newest = history.newest
        if newest is None:
            return
        if "before the plan" not in self.struck:
            if newest.plan and newest.first_commit and now > newest.plan - _BEFORE_PLAN:
                self._kill("before the plan", newest.generation, "20 s before the planned restart")
        elif self._claimed_anew(newest):
            self._kill("after the claim", newest.generation, "between claim and adoption")

    def _claimed_anew(self, life: Life) -> bool:
        """Return True if a restart after the first one hit is between its claim and its application."""
        later = life.generation > self.struck["before the plan"] + 1
        return "after the claim" not in self.struck and later and life.application is None

    def promise(self) -> Promise:
        evidence = ", ".join(f"{moment} of generation {number}" for moment, number in self.struck.items())
        return Promise(
            "Airflow was crashed twice at the worst moments", len(self.struck) == 2, evidence or "not struck"
        )

    def _kill(self, moment: str, generation: int, words: str) -> None:
        self.struck[moment] = generation
        self.console.say(f"SIGKILL to {' and '.join(_VICTIMS)}, {words} of generation {generation}", "crash")
        for victim in _VICTIMS:
            self.supervisor.kill(victim)
