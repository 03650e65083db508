"""The notes of what this triggerer told, on HDFS. No watch and no message waits for one.

What can't be read or noted at the moment, as HDFS is away or refuses it, is tried again for as long as this process
lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context
from itertools import islice

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.streams.event import Ledger, ToldSubject
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.clusters.told import ToldNotes
from airflow_kstream.triggers.shared import Sessions, own_sessions

log = logging.getLogger(__name__)

# Seconds before the next try, from the first failure on.
_PAUSE, _LONGEST_PAUSE = 15.0, 300.0
# Subjects of one question: where a thousand streams begin at once, the first ones don't wait for the last.
_AT_ONCE = 200

Step = Callable[[Sessions[ToldNotes]], Awaitable[bool]]


@contextmanager
def _told(cluster: Cluster) -> Iterator[ToldNotes]:
    with open_session(cluster, cluster.watcher) as session:
        yield session.told


class Notes:
    """The notes in the state_dir of one connection, as its watcher. To be used from one event loop."""

    def __init__(self, conn_id: str) -> None:
        self._conn_id = conn_id
        self._wanted: list[tuple[ToldSubject, asyncio.Future[Ledger]]] = []
        self._unnoted: dict[ToldSubject, Ledger] = {}
        self._asked, self._never = asyncio.Event(), asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._complaints: set[str] = set()

    async def read(self, subject: ToldSubject) -> Ledger:
        """Return what was told of the subject, by a look that begins after now; wait for as long as there is none."""
        wanted: asyncio.Future[Ledger] = asyncio.get_running_loop().create_future()
        self._wanted.append((subject, wanted))
        self._asked.set()
        if self._reader is None or self._reader.done():
            # A context of its own: its lines must not land in the log of the task that happened to be first.
            reading = self._keep_trying("read", self._read_some, self._asked)
            self._reader = asyncio.create_task(reading, context=Context())
        return await wanted

    def note(self, subject: ToldSubject, ledger: Ledger) -> None:
        """Take what was told of a subject, to note it in its turn. Never blocks."""
        self._unnoted[subject] = ledger
        if self._writer is None or self._writer.done():
            noting = self._keep_trying("noted", self._note_some, self._never)
            self._writer = asyncio.create_task(noting, context=Context())

    async def _keep_trying(self, what: str, step: Step, hurry: asyncio.Event) -> None:
        """Take steps until nothing is left; after one that failed, wait, or until somebody is in a hurry."""
        pause = 0.0
        async with own_sessions(self._conn_id, _told) as sessions:
            while True:
                hurry.clear()
                try:
                    if not await step(sessions):
                        return
                    pause = 0.0
                except Exception as error:
                    self._complain(what, error)
                    pause = min(max(2 * pause, _PAUSE), _LONGEST_PAUSE)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await hurry.wait()

    async def _read_some(self, sessions: Sessions[ToldNotes]) -> bool:
        # Who does not wait any longer has cancelled its future.
        self._wanted = [wanted for wanted in self._wanted if not wanted[1].done()]
        batch = self._wanted[:_AT_ONCE]
        if not batch:
            return False
        subjects = dict.fromkeys(subject for subject, _ in batch)
        found = await sessions.ask(lambda told: told.read([*subjects]))
        for subject, wanted in batch:
            if subject in found and not wanted.done():
                wanted.set_result(found[subject])
        # What can't be read at the moment keeps no other from its turn.
        left = [wanted for wanted in batch if wanted[0] not in found]
        self._wanted = [*self._wanted[len(batch) :], *left]
        if len(left) == len(self._wanted) > 0:
            raise Unavailable("what was noted of them can't be read", tried=f"read notes on {len(left)} subjects")
        return True

    async def _note_some(self, sessions: Sessions[ToldNotes]) -> bool:
        batch = dict(islice(self._unnoted.items(), _AT_ONCE))
        if not batch:
            return False
        noted: set[ToldSubject] = set()

        def note(told: ToldNotes) -> None:
            for subject, ledger in batch.items():
                if subject not in noted:
                    told.note(subject, ledger)
                    noted.add(subject)

        try:
            await sessions.ask(note)
        finally:
            self._take_out(batch, noted)
        return True

    def _take_out(self, batch: Mapping[ToldSubject, Ledger], noted: Collection[ToldSubject]) -> None:
        """Forget what is noted, unless more was told since. The first one that is left keeps no other from its turn."""
        newest = {subject: self._unnoted.pop(subject) for subject in batch}
        left = [subject for subject in batch if subject not in noted or newest[subject] is not batch[subject]]
        self._unnoted |= {subject: newest[subject] for subject in (*left[1:], *left[:1])}

    def _complain(self, what: str, error: Exception) -> None:
        """Log each kind of failure once: a fleet has a thousand of them."""
        cause = f"{what} {type(error).__name__}"
        if cause not in self._complaints:
            log.warning(
                "What was told of %s can't be %s on HDFS, so a restart of this triggerer may tell it again; it is "
                "tried again: %s",
                self._conn_id,
                what,
                error,
            )
        self._complaints.add(cause)
