"""Triggers that no triggerer serves, against the triggerers' capacity.

It reads Airflow's database, so it runs in the API server, and for `airflow kstream` where that reaches the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow.configuration import conf

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# A triggerer takes what is new within seconds; one that restarts, within this time.
_PATIENCE = timedelta(minutes=1)


@dataclass(frozen=True)
class TriggerersLoad:
    """The triggers that have `waited` for a triggerer for longer than a minute, those in all, and who may serve them.

    `capacity` is one triggerer's, by the configuration of the process that asks: a triggerer may have another one.
    """

    waited: int
    triggers: int
    triggerers: int
    capacity: int

    @property
    def words(self) -> str:
        """Return what waits and what to set; empty if nothing waits."""
        if not self.waited:
            return ""
        who = "1 trigger has" if self.waited == 1 else f"{self.waited} triggers have"
        whose = "its task" if self.waited == 1 else "their tasks"
        waits = f"{who} waited for a triggerer for longer than a minute, and nobody watches for {whose}"
        if not self.triggerers:
            return f"{waits}: no triggerer is alive. Start one"
        room = f"{self.triggerers * self.capacity} ({self.triggerers} living, [triggerer] capacity {self.capacity})"
        if self.triggers > self.triggerers * self.capacity:
            needed = -(-self.triggers // self.triggerers)
            more = f"Set [triggerer] capacity to {needed} or more for each triggerer, or start another one"
            return f"{waits}: there are {self.triggers}, and room for {room}. {more}"
        see = "See whether each triggerer has this capacity, and serves the queue and the team of these triggers"
        return f"{waits}: there are {self.triggers}, and room for {room}. {see}"


def triggerers_load(session: Session, now: datetime) -> TriggerersLoad:
    """Return how the triggerers are loaded, in two queries."""
    from airflow.jobs.job import Job
    from airflow.models.trigger import Trigger
    from sqlalchemy import case, func, or_, select

    threshold = timedelta(seconds=conf.getfloat("triggerer", "triggerer_health_check_threshold"))
    unended = select(Job.id).where(Job.job_type == "TriggererJob", Job.end_date.is_(None))
    alive = unended.where(Job.latest_heartbeat > now - threshold)
    triggerers = session.scalar(select(func.count()).select_from(alive.subquery())) or 0
    # One whose triggerer stopped a moment ago is taken by the next one.
    lately = unended.where(Job.latest_heartbeat > now - max(threshold, _PATIENCE))
    unserved = or_(Trigger.triggerer_id.is_(None), Trigger.triggerer_id.not_in(lately))
    waits = case((unserved & (Trigger.created_date < now - _PATIENCE), 1), else_=0)
    triggers, waited = session.execute(select(func.count(), func.sum(waits)).select_from(Trigger)).one()
    return TriggerersLoad(waited or 0, triggers, triggerers, conf.getint("triggerer", "capacity"))
