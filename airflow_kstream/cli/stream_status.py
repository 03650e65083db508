"""`kstream streams status`: how streams stand, once or again and again."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.output import JsonOption, is_read, note, print_json, say, show
from airflow_kstream.cli.stream_freeze import frozen_words
from airflow_kstream.cli.stream_options import NameOrAll
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.printable import printable_words
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.doctor.examination import foretell
from airflow_kstream.supervise.streams.look.status import StandingLook
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.views.streams import streams_table

Watching = Annotated[
    bool, typer.Option("--watch", "-w", help="Look again, 15 s after each look, until Ctrl-C. Exit 0 then.")
]
_UNREAD = 1
_SECONDS_BETWEEN = 15.0
# What is foretold is days away, and costs as many questions as `kstream doctor` asks.
_FORETOLD_FOR = timedelta(minutes=10)


def status(
    cluster_name: ClusterOption, name: NameOrAll = "", watch: Watching = False, as_json: JsonOption = False
) -> None:
    """Show a stream, or every stream of this state_dir: application, heartbeat, last commit, time to the horizon.

    The heartbeat is HEALTHY, IDLE (nothing planned), STARTING (no commit of this generation yet), START_STALLED,
    NO_CHECKPOINT (it runs and doesn't write the declared folder), STALLED or UNKNOWN. A watcher, who looks again, also
    says SLOW before STALLED, and CHECKPOINT_CHANGED. A stream that does not run is shown as it was last seen. A horizon
    of `none`: nothing ends its credentials. What the doctor expects for a stream is shown with its date; `kstream
    doctor` has the fixes. A stream that runs and has no folder is shown with what a person may do. What strangers wrote
    in a stream's folder counts for nothing, and is named with their names on HDFS. Exit 1 if nothing could be read of a
    stream.

    With `--watch`, streams in trouble come first. On a terminal one table stays up to date; elsewhere each look prints
    the time and a table. Servers that don't answer are shown, and end nothing.
    """
    if watch and as_json:
        raise InvalidInput("--watch and --json are both given; allowed is one of them")
    with opened(cluster_name) as cluster:
        if watch:
            _watch(_looks(cluster, name), Console())
            return
        with open_session(cluster, cluster.watcher) as session:
            seen = _Looker(session, name).look()
    if seen.frozen:
        note(seen.frozen)
    if as_json:
        print_json({stream: verdict.to_json() for stream, verdict in seen.verdicts.items()})
    else:
        show(streams_table(seen.verdicts))
    if any(verdict.unread for verdict in seen.verdicts.values()):
        raise typer.Exit(_UNREAD)


@dataclass(frozen=True)
class _Seen:
    """The result of a look, and its time, None before the first; with a `trouble`, the looks after it saw nothing."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    frozen: str = ""
    at: datetime | None = None
    trouble: str = ""

    def lines(self) -> Iterator[str]:
        yield f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S %Z}"
        if self.trouble:
            yield self.trouble
            yield f"what follows was so at {self.at:%H:%M:%S %Z}" if self.at else "nothing was seen yet"
        if self.frozen:
            yield self.frozen


@dataclass
class _Looker:
    """Looks at streams through one session. Not every look asks what the doctor foretells."""

    session: ClusterSession
    name: str
    again: bool = False
    _foretold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _foretold_at: datetime | None = None

    def __post_init__(self) -> None:
        self._standing = StandingLook(self.session, again=self.again)

    def look(self) -> _Seen:
        frozen = frozen_words(self.session)
        verdicts = self._standing.look(self.name)
        return _Seen(self._with_foretold(verdicts), frozen, datetime.now(UTC))

    def _with_foretold(self, verdicts: Mapping[str, Verdict]) -> Mapping[str, Verdict]:
        """Add what the doctor expects, unless servers are away, which would make everybody wait once more."""
        now = datetime.now(UTC)
        if any(verdict.shared for verdict in verdicts.values()):
            return verdicts
        if self._foretold_at is None or now - self._foretold_at >= _FORETOLD_FOR:
            self._foretold, self._foretold_at = foretell(self.session, self.name), now
        return {
            each: replace(verdict, credentials=replace(verdict.credentials, foretold=self._foretold.get(each, ())))
            for each, verdict in verdicts.items()
        }


def _looks(cluster: Cluster, name: str) -> Iterator[_Seen]:
    """Yield look after look. Sessions are opened again after a failure.

    Raises KstreamError: as a single look does, when the first one is refused: its name may be wrong.
    """
    seen = _Seen()
    while True:
        try:
            with open_session(cluster, cluster.watcher) as session:
                looker = _Looker(session, name, again=True)
                while True:
                    seen = looker.look()
                    yield seen
        except KstreamError as error:
            if seen.at is None and not error.retryable:
                raise
            yield replace(seen, trouble=error.without_advice)


def _watch(looks: Iterator[_Seen], console: Console) -> None:
    """Show each look, until Ctrl-C or until nobody reads the output any longer."""
    try:
        with _screen(console) as show_look:
            for seen in looks:
                show_look(seen)
                if not is_read():
                    return
                time.sleep(_SECONDS_BETWEEN)
    except KeyboardInterrupt:
        return


@contextmanager
def _screen(console: Console) -> Iterator[Callable[[_Seen], None]]:
    if not console.is_terminal:
        yield _print
        return
    with Live(console=console, auto_refresh=False) as live:
        # A signal that ends this process would leave it hidden.
        console.show_cursor(True)
        yield lambda seen: live.update(_view(seen), refresh=True)


def _view(seen: _Seen) -> RenderableType:
    """Return what a terminal shows: of a table that is higher, what fits."""
    rows = [streams_table(seen.verdicts, by_trouble=True)] if seen.at else []
    return Group(*(Text(printable_words(line)) for line in seen.lines()), *rows)


def _print(seen: _Seen) -> None:
    for line in seen.lines():
        say(line)
    if seen.at:
        show(streams_table(seen.verdicts, by_trouble=True))
    sys.stdout.flush()
