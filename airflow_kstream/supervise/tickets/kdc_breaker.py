"""A circuit breaker for realms whose KDCs do not answer, so that a round need not wait for them repeatedly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import split_principal

# libkrb5 waits 25 s for a KDC that drops its requests. One silence may be chance.
_GIVE_UP_AFTER = 3


class RealmCircuitBreaker:
    """The breaker of one round: once a realm's KDCs did not answer for three principals, its others fail at once.

    The next answer to a request that still waits closes the breaker of that realm. It is thread-safe: after a silence
    no new request starts until the pending ones have ended or one of them was answered.

    `give_up_after` is how many silences are enough.
    """

    def __init__(self, give_up_after: int = _GIVE_UP_AFTER) -> None:
        self._give_up_after = give_up_after
        self._silences: Counter[str] = Counter()
        self._pending: Counter[str] = Counter()
        self._changed = Condition()

    @contextmanager
    def request(self, principal: str, tried: str) -> Iterator[None]:
        """Guard a request to the principal's realm. Raises Unavailable: when the realm was given up before."""
        realm = split_principal(principal)[2]
        with self._changed:
            self._changed.wait_for(lambda: not self._silences[realm] or not self._pending[realm])
            self._require_speaking(realm, principal, tried)
            self._pending[realm] += 1
        answered = True
        try:
            yield
        except Unavailable:
            answered = False
            raise
        finally:
            with self._changed:
                self._pending[realm] -= 1
                self._silences[realm] = 0 if answered else self._silences[realm] + 1
                self._changed.notify_all()

    def note_silence(self, principal: str) -> None:
        """Count a request outside of `request` to which no KDC of the principal's realm answered."""
        with self._changed:
            self._silences[split_principal(principal)[2]] += 1

    def require_speaking(self, principal: str, tried: str) -> None:
        """Check the principal's realm without counting what follows. Raises Unavailable: when it was given up."""
        with self._changed:
            self._require_speaking(split_principal(principal)[2], principal, tried)

    def _require_speaking(self, realm: str, principal: str, tried: str) -> None:
        silences = self._silences[realm]
        if silences >= self._give_up_after:
            earlier = "an earlier request" if silences == 1 else f"{silences} earlier requests"
            words = f"not contacted: no KDC of {realm} answered {earlier} of this round"
            raise Unavailable(words, tried=tried, principal=principal)
