"""The orders of persons in a state_dir: read of all who may give them, and given in a folder of one's own."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.answers import Listing
from airflow_kstream.model.clusters.authors import (
    LAST_OF_SUPERVISORS,
    LAST_OF_USERS,
    SUPERVISORS_FILE,
    FolderKind,
    OrderFile,
    Supervisors,
    order_name,
    order_of,
)
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.policy.authors import may_order
from airflow_kstream.supervise.clusters.state_dir import make_own_folder, own_folder
from airflow_kstream.supervise.clusters.write_once import wrote_once

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
    from airflow_kstream.supervise.clusters.state_dir import StateDir, StateListing


# Writers are persons: so many of them at the same moment are a fault.
_ATTEMPTS = 20
_LONGEST_PAUSE_SECONDS = 0.2
# Of one author on one subject: enough to see who wanted what lately.
ORDERS_KEPT = 10
# Two changes of a folder within this time may have the same time of the NameNode's.
_TICK_SECONDS = 2.0
# HDFS never sets the time of a folder back: with a NameNode whose clock is behind the former's, an order can come
# without a trace there. After so many seconds a folder is listed again, whatever its time is.
_LISTINGS_HOLD_SECONDS = 60.0
_LONGEST_ORDER = 64 * 1024


@dataclass(frozen=True)
class _Listed:
    """The orders in a folder by their subjects, `at` a reading of this process's clock. `cut`: there are too many, and
    only those subjects are listed that somebody wanted to know."""

    entry: FileStatus
    at: float
    cut: bool
    by_subject: dict[str, tuple[OrderFile, ...]]


class Orders:
    """The orders of one state_dir. A folder is listed again after a minute, and once its time has changed; an order
    never changes."""

    def __init__(self, hdfs: Hdfs, state: StateDir) -> None:
        self._hdfs = hdfs
        self._state = state
        self._listed: dict[str, _Listed] = {}
        # The newest one on each subject that was read.
        self._texts: dict[str, tuple[OrderFile, str]] = {}

    def newest(self, subject: str, speakers: Collection[str], listing: StateListing) -> OrderFile | None:
        """Return the order on this subject that counts: of the supervisors or of these other `speakers`.

        Costs nothing for a folder that was listed within a minute and did not change since. Raises Unavailable: when
        HDFS is away. Raises Denied: when a folder can't be listed by this identity: nobody knows then what is wanted,
        unless a supervisor's order has a higher number than all that may lie there.
        """
        found, hidden = self._files(subject, speakers, listing)
        newest = max(found, key=lambda order: order.rank, default=None)
        if hidden and (newest is None or newest.number <= LAST_OF_USERS):
            raise hidden
        return newest

    def text(self, order: OrderFile) -> str:
        """Read an order that was listed. Raises Unavailable: when a newer one has superseded it since. Raises
        InvalidInput: when it is not text, or too long a one."""
        known = self._texts.get(order.subject)
        if known is None or known[0] != order:
            try:
                known = self._texts[order.subject] = order, self._hdfs.read(order.path, _LONGEST_ORDER)
            except NotFound as gone:
                message = f"{gone.message}: it was deleted after it was listed"
                raise Unavailable(message, tried=gone.tried, server=gone.server, principal=gone.principal) from gone
        return known[1]

    def give(self, subject: str, speakers: Collection[str], written: Callable[[OrderFile | None], str]) -> OrderFile:
        """Write the order that `written` makes of the newest one, and return it.

        When two persons give orders at once, in different folders, each sees the other's or was seen by the other, who
        then decides again: no order is lost unread. The text must be this writer's alone, by a nonce.

        Raises Denied: when this identity's orders would not count. Raises Conflict: when others always speak first, or
        no number is left, and what `written` raises. What is refused does not stay: it may be later than the order for
        which it is refused, and would count in its place. The refusal names what could not be removed.
        """
        laid: list[str] = []
        try:
            return self._given(subject, speakers, written, laid)
        except Unavailable:
            # It may have been given.
            raise
        except KstreamError as refusal:
            if standing := self._not_removed(laid):
                raise self._still_there(refusal, standing) from refusal
            raise

    def _not_removed(self, laid: Iterable[str]) -> dict[str, KstreamError]:
        """Delete these orders, and return why those that may still be there were not."""
        failures: dict[str, KstreamError] = {}
        for path in laid:
            try:
                self._hdfs.delete(path)
            except KstreamError as failure:
                failures[path] = failure
        return failures

    def _still_there(self, refusal: KstreamError, standing: dict[str, KstreamError]) -> Conflict:
        why = next(iter(standing.values())).without_advice
        removal = " and ".join(f"`hdfs dfs -rm {as_word(path)}`" for path in standing)
        message = (
            f"{refusal.message.rstrip('.')}; and the refused order was written, can't be removed, and may be obeyed "
            f"until {self._state.user} or HDFS's superuser runs {removal}: {why}"
        )
        tried, server = refusal.tried, refusal.server
        return Conflict(message, tried=tried, server=server, principal=refusal.principal).passing(refusal.retryable)

    def _given(
        self, subject: str, speakers: Collection[str], written: Callable[[OrderFile | None], str], laid: list[str]
    ) -> OrderFile:
        """Give an order, as `give`; `laid` gets the path of each file of ours that stood there meanwhile."""
        listing = self._state.look()
        self._require_speaker(subject, speakers, listing)
        folder = own_folder(self._hdfs, self._state.path, FolderKind.ORDERS)
        make_own_folder(self._hdfs, folder, FolderKind.ORDERS.mode)
        basis, number = self._basis(subject, speakers, listing)
        for _ in range(_ATTEMPTS):
            self._require_number(number, basis, listing)
            path, text = f"{folder}/{order_name(subject, number)}", written(basis)
            if ours := wrote_once(self._hdfs, f"{folder}/.order-{uuid.uuid4().hex}", path, text):
                laid.append(path)
            found, _ = self._files(subject, speakers, self._state.look())
            others = [order for order in found if order.number >= number and not (ours and order.path == path)]
            if ours and not others:
                return self._standing(path, found)
            basis = max(others, key=lambda order: order.rank, default=basis)
            number = max([number, *(order.number for order in others)]) + 1
            time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))
        tried = f"write {folder}/{order_name(subject, number)}"
        raise Conflict(f"others wrote orders {_ATTEMPTS} times meanwhile", tried=tried).passing()

    def _basis(self, subject: str, speakers: Collection[str], listing: StateListing) -> tuple[OrderFile | None, int]:
        """Return the newest order and the number of the next one: a supervisor's is above all that a user may hide."""
        found, hidden = self._files(subject, speakers, listing)
        if hidden and self._state.user not in listing.supervisors:
            raise hidden
        basis = max(found, key=lambda order: order.rank, default=None)
        return basis, max(basis.number if basis else 0, LAST_OF_USERS if hidden else 0) + 1

    def _standing(self, path: str, found: Iterable[OrderFile]) -> OrderFile:
        """Return our order as it was listed, and delete our old ones. Raises Conflict: when it doesn't stand there."""
        order = next((order for order in found if order.path == path), None)
        if order is None:
            message = "it was written, and is not among the orders that count: somebody removed it at once"
            raise Conflict(message, tried=f"write {path}", server=self._hdfs.servers)
        self._forget(order.subject, path.rpartition("/")[0], order.number)
        return order

    def _require_number(self, number: int, basis: OrderFile | None, listing: StateListing) -> None:
        if basis and number > _last(self._state.user, listing.supervisors):
            raise Conflict(
                f"no number is left for an order of {self._state.user}: {basis.author} or HDFS's superuser removes the "
                f"one that took it with `hdfs dfs -rm {as_word(basis.path)}`",
                tried=f"give an order on {basis.subject}",
                server=self._hdfs.servers,
            )

    def _require_speaker(self, subject: str, speakers: Collection[str], listing: StateListing) -> None:
        user = self._state.user
        if may_order(user, listing.supervisors, speakers):
            return
        others = ", ".join(sorted(speakers)) or "the stream's own user"
        raise Denied(
            f"orders of {user} don't count here, but those of {listing.supervisors} and {others}; one of the first can "
            f"name {user} in a line of {listing.path}/{SUPERVISORS_FILE}",
            tried=f"give an order on {subject}",
            server=self._hdfs.servers,
        )

    def _files(
        self, subject: str, speakers: Collection[str], listing: StateListing
    ) -> tuple[list[OrderFile], Denied | None]:
        """Return the orders that count, and why a folder of a stream's user can't be listed. Raises Denied: when it is
        a supervisor's."""
        found: list[OrderFile] = []
        hidden: Denied | None = None
        for path, entry in listing.folders(FolderKind.ORDERS).items():
            if may_order(entry.owner, listing.supervisors, speakers):
                try:
                    found += self._in(path, entry, subject)
                except Denied as denied:
                    if entry.owner in listing.supervisors:
                        raise
                    hidden = denied
        return [order for order in found if _counts(order, listing.supervisors, speakers)], hidden

    def _in(self, path: str, entry: FileStatus, subject: str) -> tuple[OrderFile, ...]:
        listed = self._known(path, entry) or self._look(path, entry)
        if listed.cut and subject not in listed.by_subject:
            # Beside so many others a stream's own are few.
            listing = self._listing(path, entry, f"{subject}.")
            listed.by_subject[subject] = orders_in(path, entry, listing.entries).get(subject, ())
        return listed.by_subject.get(subject, ())

    def _known(self, path: str, entry: FileStatus) -> _Listed | None:
        known = self._listed.get(path)
        fresh = known and known.entry == entry and time.monotonic() - known.at < _LISTINGS_HOLD_SECONDS
        return known if fresh and self._is_settled(entry) else None

    def _look(self, path: str, entry: FileStatus) -> _Listed:
        at, listing = time.monotonic(), self._listing(path, entry)
        listed = _Listed(entry, at, bool(listing.cut), {} if listing.cut else orders_in(path, entry, listing.entries))
        if self._is_settled(entry):
            self._listed[path] = listed
        return listed

    def _is_settled(self, entry: FileStatus) -> bool:
        """Return whether a change from now on shows in the folder's time."""
        return (self._hdfs.now() - entry.modified).total_seconds() > _TICK_SECONDS

    def _listing(self, path: str, entry: FileStatus, prefix: str = "") -> Listing:
        try:
            return self._hdfs.listing(path, prefix)
        except Denied as denied:
            why = (
                f"{path} holds orders of {entry.owner}, and without them nobody knows what is wanted: {entry.owner} or "
                "HDFS's superuser lets this principal read it, as "
                f"`hdfs dfs -chmod {FolderKind.ORDERS.mode} {as_word(path)}` does"
            )
            message = f"{denied.message.rstrip('.')}; {why}"
            raise Denied(message, tried=denied.tried, server=denied.server, principal=denied.principal) from denied

    def _forget(self, subject: str, folder: str, newest: int) -> None:
        """Delete this author's own old orders. The new one stands, whatever fails here."""
        with suppress(KstreamError):
            for file in self._hdfs.listing(folder, f"{subject}.").entries:
                named = order_of(file.name)
                if named and named[0] == subject and named[1] <= newest - ORDERS_KEPT:
                    self._hdfs.delete(f"{folder}/{file.name}")


def _counts(order: OrderFile, supervisors: Supervisors, speakers: Collection[str]) -> bool:
    return may_order(order.author, supervisors, speakers) and order.number <= _last(order.author, supervisors)


def _last(author: str, supervisors: Supervisors) -> int:
    return LAST_OF_SUPERVISORS if author in supervisors else LAST_OF_USERS


def orders_in(path: str, folder: FileStatus, files: Iterable[FileStatus]) -> dict[str, tuple[OrderFile, ...]]:
    """Return the orders among these files of a folder, by their subjects and regardless of their authors."""
    found: dict[str, list[OrderFile]] = {}
    for file in files:
        if not file.is_folder and (named := order_of(file.name)):
            order = OrderFile(f"{path}/{file.name}", *named, file.owner, file.modified, folder.modified)
            found.setdefault(order.subject, []).append(order)
    return {subject: tuple(orders) for subject, orders in found.items()}
