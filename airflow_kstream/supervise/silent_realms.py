"""Which realms have KDCs that do not answer: whoever waits for one of them needs not wait for it again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.identity import split_principal

# libkrb5 asks a KDC that drops what it gets for 25 s. One such time may be chance.
_GIVE_UP_AFTER = 3


class SilentRealms:
    """Of one round: after no KDC of a realm answered for three principals, the others of it fail at once.

    The next answer from the realm to anyone who still waits makes it speak again. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._silences: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def asking(self, principal: str, tried: str) -> Iterator[None]:
        """Around a question to the principal's realm. Raise Unavailable instead of asking when it was given up."""
        realm = split_principal(principal)[2]
        silences = self._silences[realm]
        if silences >= _GIVE_UP_AFTER:
            words = f"not asked: no KDC of {realm} answered when {silences} others were tried before, in this round"
            raise Unavailable(words, tried=tried, principal=principal)
        answered = True
        try:
            yield
        except Unavailable:
            answered = False
            raise
        finally:
            with self._lock:
                self._silences[realm] = 0 if answered else self._silences[realm] + 1
