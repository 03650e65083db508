"""How many recoveries may run at once: few at first, more while it goes well, fewer on trouble."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.open_file import FileState
from airflow_kstream.policy.leases.limits import Pace


@dataclass(eq=False)
class Window:
    """The recoveries that one DataNode, or all together, can bear. Without `size` there is no limit."""

    name: str
    size: int | None
    most: int | None
    calm: timedelta
    in_flight: int = 0
    given_up_in_a_row: int = 0
    last_close: timedelta | None = None
    _closed_well: int = 0
    _halved: timedelta | None = None
    _troubled: timedelta | None = None

    @property
    def room(self) -> float:
        return float("inf") if self.size is None else max(0, self.size - self.in_flight)

    def closed_well(self, now: timedelta) -> None:
        """One was closed in good time. It opens up only when there was no trouble for a while."""
        self._closed_well += 1
        full = self.size is not None and self._closed_well >= self.size
        if full and self.size is not None and self.most is not None and self._is_over(self._troubled, now):
            self.size = min(self.size * 2, self.most)
            self._closed_well = 0

    def trouble(self, now: timedelta) -> None:
        """Halve it, once for all the trouble that comes together."""
        self._closed_well = 0
        if self.size is not None and self._is_over(self._halved, now):
            self.size = max(1, self.size // 2)
            self._halved = now
        self._troubled = now

    def _is_over(self, since: timedelta | None, now: timedelta) -> bool:
        return since is None or now - since >= self.calm


@dataclass(eq=False)
class Place:
    """Where the recovery of one file counts: with its DataNode, and in `taken` of all the windows that it is in."""

    host: Window
    windows: tuple[Window, ...]
    taken: tuple[Window, ...] = ()

    @property
    def has_room(self) -> bool:
        return all(window.room >= 1 for window in self.windows)

    def take(self) -> None:
        self.taken = self.windows
        for window in self.taken:
            window.in_flight += 1

    def leave(self, *windows: Window) -> None:
        for window in windows:
            window.in_flight -= 1
        self.taken = tuple(window for window in self.taken if window not in windows)


class Windows:
    """One for each DataNode, one for all `together`, and one for erasure-coded files."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._hosts: dict[str, Window] = {}
        self._coded = Window("", pace.erasure_coded, pace.erasure_coded, pace.slow_close)
        self.together = self._window("", pace.in_all)

    def place(self, state: FileState) -> Place:
        """By the DataNode that the NameNode names first, which most likely does the work."""
        name = state.block.hosts[0] if state.block and state.block.hosts else ""
        host = self._hosts.setdefault(name, self._window(name, self._pace.per_datanode))
        return Place(host, (self.together, host, *([self._coded] if state.erasure_coded else [])))

    def closed(self, now: timedelta, place: Place | None) -> None:
        if place:
            place.host.last_close = now
            place.host.given_up_in_a_row = 0
            if self.together in place.taken:
                for window in place.taken:
                    window.closed_well(now)

    def is_slow(self, now: timedelta, place: Place | None) -> None:
        """The NameNode has nothing to do with it any more; its DataNode still has."""
        if place:
            place.leave(self.together)
            place.host.trouble(now)

    def give_back(self, place: Place | None) -> None:
        if place:
            place.leave(*place.taken)

    def _window(self, name: str, most: int | None) -> Window:
        start = self._pace.start
        size = most if most is None or start is None else min(most, start)
        return Window(name, size, most, self._pace.slow_close)
