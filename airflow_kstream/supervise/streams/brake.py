"""The brake of a state_dir: numbered words of persons, the highest of which counts.

A connection has one state_dir, where every supervisor of its streams looks before each step. So one file in it stops
all of them, in whatever process or Airflow they run, and none that can't read it can act: claims, desired states and
markers lie on the same filesystem.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.freeze import (
    LIFTED,
    NOT_FROZEN,
    Freeze,
    freeze_file,
    freeze_folder,
    newest_freeze,
    number_of_freeze,
)
from airflow_kstream.supervise.streams.formats import read_freeze, unread_freeze, written_freeze
from airflow_kstream.supervise.streams.state_folder import new_nonce
from airflow_kstream.supervise.streams.write_once import wrote_once

# Writers are persons: so many of them at the same moment are a fault.
_ATTEMPTS = 20
# Enough to see who froze the cluster lately.
WORDS_KEPT = 10


class Brake:
    """The brake of one state_dir. What was read once is remembered: a word never changes.

    `by` is the person who speaks; by default it is this process's user and host.
    """

    def __init__(self, hdfs: Hdfs, state_dir: str, by: str = "") -> None:
        self._hdfs = hdfs
        self._state_dir = state_dir
        self._folder = freeze_folder(state_dir)
        self._by = by or user_at_host()
        self._known = NOT_FROZEN

    def newest(self) -> Freeze:
        """Return the word that counts, whether it still holds or not. Costs one request, and two more for a new word.

        Raises Unavailable: when HDFS is away. Raises Denied: when this identity may not read it.
        """
        number = newest_freeze(self._hdfs.names(self._folder))
        if number != self._known.number:
            self._known = self._read(number) if number else NOT_FROZEN
        return self._known

    def freeze(self, lasts: timedelta, reason: str) -> Freeze:
        """Freeze the cluster for this long from now on, by the NameNode's clock. It replaces an earlier freeze.

        Raises Conflict: when others always write first.
        """
        return self._say(lasts, reason)

    def lift(self, reason: str) -> Freeze:
        """Lift the freeze, also one that can't be read. Raises Conflict: as `freeze`."""
        return self._say(None, reason)

    def _say(self, lasts: timedelta | None, reason: str) -> Freeze:
        # Its time comes with this answer, and the folder has to exist before.
        mode = self._hdfs.status(self._state_dir).permission
        self._hdfs.make_folder(self._folder, mode)
        for _ in range(_ATTEMPTS):
            number = newest_freeze(self._hdfs.names(self._folder)) + 1
            word = Freeze(number, self._hdfs.now() + lasts if lasts else LIFTED, self._by, reason)
            if self._wrote(word):
                self._forget(number)
                return word
        tried = f"write the freeze of {self._state_dir}"
        raise Conflict(f"others wrote it {_ATTEMPTS} times meanwhile", tried=tried).passing()

    def _wrote(self, word: Freeze) -> bool:
        """Return False when somebody else wrote the word of this number.

        A writer that slept may find its number free again: then so many wrote after it that its word was not read.
        """
        nonce = new_nonce()
        draft, path = f"{self._folder}/.freeze-{nonce}", f"{self._folder}/{freeze_file(word.number)}"
        ours = wrote_once(self._hdfs, draft, path, written_freeze(word, self._by, nonce))
        return ours and newest_freeze(self._hdfs.names(self._folder)) < word.number + WORDS_KEPT

    def _read(self, number: int) -> Freeze:
        path = f"{self._folder}/{freeze_file(number)}"
        try:
            return read_freeze(self._hdfs.read(path), number)
        except InvalidInput as error:
            return unread_freeze(number, error)
        except NotFound as gone:
            message = f"{gone.message}: it was deleted after it was listed"
            raise Unavailable(message, tried=gone.tried, server=gone.server, principal=gone.principal) from gone

    def _forget(self, newest: int) -> None:
        """Delete old words, and leave those of others that we may not delete. The word stands, whatever fails here."""
        names: frozenset[str] = frozenset()
        with suppress(KstreamError):
            names = self._hdfs.names(self._folder)
        for name in names:
            if 0 < number_of_freeze(name) <= newest - WORDS_KEPT:
                with suppress(KstreamError):
                    self._hdfs.delete(f"{self._folder}/{name}")
