"""One event for a cluster whose environment ends streams, however many they are: a begin, an end, and a metric."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta

from airflow_kstream import metrics
from airflow_kstream.model.durations import format_duration

log = logging.getLogger(__name__)

# Seconds. A stream that nobody has looked at for this long, as one whose DAG is paused, prolongs no event.
_FORGOTTEN = 3600.0


@dataclass
class Environment:
    """The troubles of a cluster's streams that are none of their own. All times are the loop's, in seconds.

    A triggerer that was restarted begins an event that lasts a second time.
    """

    conn_id: str
    _streams: dict[str, tuple[str, float]] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    @property
    def causes(self) -> set[str]:
        """Return the causes whose events last."""
        return set(self._since)

    def saw(self, stream: str, cause: str, now: float) -> None:
        """Take a stream's trouble, empty if it has none; tell an event that begins or ends by it, once each."""
        before = self._streams.get(stream, ("", now))[0]
        forgotten = {its for name, (its, at) in self._streams.items() if name != stream and now - at >= _FORGOTTEN}
        self._streams = {
            name: (its, at)
            for name, (its, at) in self._streams.items()
            if (its == cause if name == stream else now - at < _FORGOTTEN)
        }
        self._end_what_is_over(now, forgotten)
        if cause:
            self._streams[stream] = cause, now
        if cause and cause not in self._since:
            self._since[cause] = now
            words = "Streams of cluster %s end without a fault of theirs (%s), %s first; they follow by themselves"
            log.error(words, self.conn_id, cause, stream)
        if before or cause:
            metrics.cluster_gauge("environment_ended", float(len(self._streams)), self.conn_id)

    def _end_what_is_over(self, now: float, forgotten: set[str]) -> None:
        lasting = {cause for cause, _ in self._streams.values()}
        for cause in self._since.keys() - lasting:
            lasted = format_duration(timedelta(seconds=now - self._since.pop(cause)))
            words = "The streams of cluster %s work again (%s), after %s"
            if cause in forgotten:
                words = "Nobody looks any longer at the last stream of cluster %s that ended (%s), %s after the first"
            log.warning(words, self.conn_id, cause, lasted)
