"""Which realms have KDCs that do not answer: whoever waits for one of them needs not wait for it again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.identity import split_principal

# libkrb5 asks a KDC that drops what it gets for 25 s. One such time may be chance.
_GIVE_UP_AFTER = 3


class RealmCircuitBreaker:
    """Of one round: after no KDC of a realm answered for three principals, the others of it fail at once.

    The next answer from the realm to anyone who still waits makes it speak again. Safe to share between threads:
    after a silence, nobody else asks before those who ask already know more.

    `give_up_after`: how many silences are enough.
    """

    def __init__(self, give_up_after: int = _GIVE_UP_AFTER) -> None:
        self._give_up_after = give_up_after
        self._silences: Counter[str] = Counter()
        self._asking: Counter[str] = Counter()
        self._changed = Condition()

    @contextmanager
    def asking(self, principal: str, tried: str) -> Iterator[None]:
        """Around a question to the principal's realm. Raise Unavailable instead of asking when it was given up."""
        realm = split_principal(principal)[2]
        with self._changed:
            self._changed.wait_for(lambda: not self._silences[realm] or not self._asking[realm])
            self._require_speaking(realm, principal, tried)
            self._asking[realm] += 1
        answered = True
        try:
            yield
        except Unavailable:
            answered = False
            raise
        finally:
            with self._changed:
                self._asking[realm] -= 1
                self._silences[realm] = 0 if answered else self._silences[realm] + 1
                self._changed.notify_all()

    def note_silence(self, principal: str) -> None:
        """Somebody has asked the principal's realm otherwise, and no KDC answered."""
        with self._changed:
            self._silences[split_principal(principal)[2]] += 1

    def require_speaking(self, principal: str, tried: str) -> None:
        """Raise Unavailable where the principal's realm was given up; what comes of asking it is not counted."""
        with self._changed:
            self._require_speaking(split_principal(principal)[2], principal, tried)

    def _require_speaking(self, realm: str, principal: str, tried: str) -> None:
        silences = self._silences[realm]
        if silences >= self._give_up_after:
            when = "" if silences == 1 else f"when {silences} others were tried "
            words = f"not asked: no KDC of {realm} answered {when}before, in this round"
            raise Unavailable(words, tried=tried, principal=principal)
