"""The freezes of a state_dir: numbered orders of supervisors, the highest of which counts.

A connection has one state_dir, where every supervisor of its streams looks before each step. So one file in it stops
all of them, in whatever process or Airflow they run, and none that can't read it can act: claims, orders and markers
lie on the same filesystem.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.clusters.authors import ALL_STREAMS, OrderFile
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.streams.freeze import LIFTED, NOT_FROZEN, Freeze
from airflow_kstream.policy.authors import may_freeze
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.streams.folder.formats import read_freeze, unread_freeze, written_freeze
from airflow_kstream.supervise.streams.folder.state_folder import new_nonce

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


class FreezeStore:
    """The freezes of the session's state_dir. What was read once is remembered: an order never changes.

    `by` is the person who speaks; by default it is this process's user and host.
    """

    def __init__(self, session: ClusterSession, by: str = "") -> None:
        self._session = session
        self._by = by or user_at_host()
        self._known: tuple[OrderFile | None, Freeze] = None, NOT_FROZEN

    def newest(self, listing: StateListing | None = None) -> Freeze:
        """Return the order that counts, whether it still holds or not. Costs one request without a `listing` of the
        state_dir, and two more for a new order.

        Raises Unavailable: when HDFS is away. Raises Denied: when this identity may not read it.
        """
        order = self._session.orders.newest(ALL_STREAMS, (), listing or self._session.state.look())
        if order != self._known[0]:
            self._known = order, self._read(order) if order else NOT_FROZEN
        return self._known[1]

    def freeze(self, lasts: timedelta, reason: str) -> Freeze:
        """Freeze the cluster for this long from now on, by the NameNode's clock. It replaces an earlier freeze.

        Raises Denied: when this session's user may not speak for all streams. Raises Conflict: when others always
        write first.
        """
        return self._say(lasts, reason)

    def lift(self, reason: str) -> Freeze:
        """Lift the freeze, also one that can't be read. Raises as `freeze`."""
        return self._say(None, reason)

    def _say(self, lasts: timedelta | None, reason: str) -> Freeze:
        self._require_supervisor()

        def written(_: OrderFile | None) -> str:
            until = self._session.hdfs.now() + lasts if lasts else LIFTED
            return written_freeze(until, self._by, reason, new_nonce())

        return self._read(self._session.orders.give(ALL_STREAMS, (), written))

    def _require_supervisor(self) -> None:
        state = self._session.state
        supervisors = state.look().supervisors
        if may_freeze(state.user, supervisors):
            return
        raise Denied(
            f"the streams of {state.path} obey {supervisors}, and {state.user} is none of them; one of them can freeze "
            f"and unfreeze, or name {state.user} in a line of {state.path}/supervisors",
            tried=f"freeze or unfreeze the streams of {state.path}",
            server=self._session.hdfs.servers,
            principal=str(self._session.identity),
        )

    def _read(self, order: OrderFile) -> Freeze:
        since = self._given_at(order)
        try:
            return read_freeze(self._session.orders.text(order), order, since)
        except (InvalidInput, Denied) as error:
            return unread_freeze(order, error, since)

    def _given_at(self, order: OrderFile) -> datetime:
        """Return when it was given. Where its time lies ahead, its folder tells: looking renews nothing.

        Where that lies ahead, too, it is now; this object reads an order once.
        """
        now = self._session.hdfs.now()
        return order.at if order.at <= now else min(order.folder_at or now, now)
