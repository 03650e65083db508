"""Journal of lease recoveries: who requested what, why, and the outcome. The NameNode keeps no such record."""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.clusters.authors import AUDIT_FOLDER, FolderKind
from airflow_kstream.model.clusters.hdfs_path import is_below
from airflow_kstream.model.errors import Conflict, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import OUTCOME_MEANS, HolderLiveness, Outcome, Recovery, Target
from airflow_kstream.model.plain import Group, fields_of
from airflow_kstream.supervise.clusters.state_dir import make_own_folder
from airflow_kstream.supervise.leases.own_files import OwnFiles

_AUDIT = f"/{AUDIT_FOLDER}"
_FILE_MODE = "640"
# Of each line. Only people act on a line, so lines of any version are read.
_VERSION = 2
_IN_EVERY_LINE = {"run", "path", "at", "who", "principal"}
_NAME = re.compile(r"(?P<run>\d{8}T\d{6}Z-[0-9a-f]{8})-(?P<number>\d{6})-(?P<kind>intents|results)\.jsonl")
# Longer than a failover takes.
_PATIENCE = timedelta(seconds=30)
# A run that works writes its results every 10 s.
_SILENT_AFTER = timedelta(seconds=30)
# Longer than any run works: the folder is listed from the day on which the earliest that matters began.
_LONGEST_RUN = timedelta(days=7)
# Of what two hosts take for the NameNode's time.
_SKEW = timedelta(seconds=2)
# What is recorded: the run itself, a probe of a holder, or a recovery, whose result has no word.
_RUN, _ASK, _RECOVER = "run", "ask", "recover"
_FOUND_DEAD = f"its holder is {HolderLiveness.DEAD}"


@dataclass(frozen=True)
class RunAuthor(Group):
    """The author of a run, as the run says of itself."""

    who: str
    principal: str


@dataclass(frozen=True)
class JournalRecord:
    """One intended recovery, or one probe of a holder.

    Without a result the outcome is UNCONFIRMED: the run ended before it could tell.
    """

    run: str
    action: str
    """For a probe of a holder "ask"."""
    path: str
    reason: str
    at: datetime
    """When it was intended."""
    by: RunAuthor
    holder: str | None
    outcome: Outcome | None
    """None for a probe of a holder."""
    why: str
    """For a probe of a holder the answer."""
    owner: str
    """HDFS's owner of the file."""
    answered: datetime | None = None
    """When the answer to a probe was known."""
    recovery: Mapping[str, Any] = field(default_factory=dict)
    """The result, as `Recovery.to_json` writes it."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data; times in ISO 8601 UTC."""
        return fields_of(self)


@dataclass(frozen=True)
class RunAtWork:
    """A run that began and has not ended: whose it is, and the folder below which it recovers."""

    run: str
    who: str
    path: str
    begun: datetime


class Journal:
    """The record of one run: few files of JSON lines in `folder`/audit, each complete or absent.

    A write that fails for half a minute raises; without its record no request may go to the NameNode. Of other runs
    only those of the same HDFS user count; `tell` hears of each file of somebody else once.
    """

    def __init__(
        self, hdfs: Hdfs, folder: str, run_id: str, identity: Identity,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:  # fmt: skip
        self.run_id = run_id
        self._hdfs = hdfs
        self._files = OwnFiles(hdfs, tell)
        self._folder = f"{folder.rstrip('/')}{_AUDIT}"
        self._by = {"version": _VERSION, "run": run_id, "who": user_at_host(), "principal": str(identity)}
        self._results: list[bytes] = []
        self._number = 0
        self._root = ""
        self._beaten = self._asked = datetime.min.replace(tzinfo=UTC)

    @classmethod
    def begin(
        cls, hdfs: Hdfs, folder: str, identity: Identity, tell: Callable[[str], None] = lambda line: None
    ) -> Journal:
        """Start the journal of a new run. No file is written until there is something to record."""
        return cls(hdfs, folder, f"{hdfs.now():%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}", identity, tell)

    def begun(self, path: str) -> None:
        """Record that this run is about to touch leases below `path`, so that other runs see it at work."""
        self._root = path
        self._write("intents", [self._run()])

    def runs_before(self) -> list[RunAtWork]:
        """Return the runs at work in the same folder or a part of it that began before this one.

        When two runs begin at once, each sees the other, and both agree which was first: HDFS's clock decides. A run
        that has written nothing for half a minute is not at work: it was killed, or waits for a file. One that waits
        for another run shows that it lives, so that those that wait keep their order.
        """
        self.beat()
        at_work = runs_at_work(self._files, self._folder, self._hdfs.now())
        runs = [run for run in at_work if _overlap(run.path, self._root)]
        own = next((run.begun for run in runs if run.run == self.run_id), None)
        return [run for run in runs if own is None or (run.begun, run.run) < (own, self.run_id)]

    def beat(self) -> None:
        """Show other runs that this one is at work, if it has written nothing for a while.

        Nothing in the file counts; it has the name of the one that comes next, which may replace it.
        """
        now = self._hdfs.now()
        if now - self._beaten >= _SILENT_AFTER / 3:
            self._hdfs.write(self._path("intents"), self._run(), overwrite=True, permission=_FILE_MODE)
            self._beaten = now

    def renewed_by_others(self, within: timedelta) -> Mapping[str, datetime]:
        """Return the holders whose leases other runs' probes renewed in this last while, each with when that was.

        A probe renews a dead holder's lease. One that was recorded before our last one, and has no answer yet, may have
        done so just now: of two runs that ask at once, one waits for the other's answer.
        """
        now = self._hdfs.now()
        place, since = self._folder.removesuffix(_AUDIT), now - within
        renewals = [
            (at, probe.holder)
            for probe in read_journal(self._files, place, since, but=self.run_id, only=_ASK)
            # A record of the future would never become too old.
            if probe.holder and (at := self._renewal(probe)) and since < at <= now + _SKEW
        ]
        return {holder: at for at, holder in sorted(renewals)}

    def _renewal(self, probe: JournalRecord) -> datetime | None:
        if probe.answered:
            return probe.answered if probe.why == _FOUND_DEAD else None
        return probe.at if (probe.at, probe.run) < (self._asked, self.run_id) else None

    def intend(self, targets: Sequence[Target]) -> None:
        """Record the targets before any request for them."""
        self._write("intents", [self._intent(_RECOVER, asdict(target)) for target in targets])

    def asked(self, holders: Mapping[str, str | None], reason: str) -> None:
        """Record holder probes (by path) before they are sent. Probing a dead holder's file starts its recovery."""
        self._asked = self._hdfs.now()
        asked = {"reason": reason, "at": self._asked.isoformat()}
        questions = [{**asked, "path": path, "holder": holder} for path, holder in holders.items()]
        self._write("intents", [self._intent(_ASK, question) for question in questions])

    def answered(self, answers: Mapping[str, str]) -> None:
        """Keep what the probes that were recorded last showed, in words by path, until the next `flush`."""
        at = {"at": self._hdfs.now().isoformat(), "asked": self._asked.isoformat()}
        fields = {"action": _ASK} | at | self._by
        self._results.extend(_line(fields | {"path": path, "why": words}) for path, words in answers.items())

    def ended(self, recovery: Recovery) -> None:
        """Keep this result until the next `flush`."""
        self._results.append(_line(self._by | {"at": self._hdfs.now().isoformat()} | recovery.to_json()))

    def flush(self, timeouts: timedelta = _PATIENCE) -> None:
        """Write the results so far. If that fails they are kept for the next time, and the error is raised."""
        results = len(self._results)
        if results:
            self._write("results", self._results[:results], timeouts)
            self._results = self._results[results:]

    def close(self) -> None:
        """Make a last attempt to write. Results that fail are lost, and their intents read as unconfirmed."""
        if self._root:
            self._results.append(self._intent(_RUN, {"path": self._root, "why": "it ended"}))
        with contextlib.suppress(KstreamError):
            self.flush(timedelta(0))

    def _run(self) -> bytes:
        return self._intent(_RUN, {"path": self._root, "reason": "to recover stuck files below it"})

    def _path(self, kind: str) -> str:
        return f"{self._folder}/{self.run_id}-{self._number:06d}-{kind}.jsonl"

    def _intent(self, action: str, what: dict[str, Any]) -> bytes:
        return _line(self._by | {"action": action, "at": self._hdfs.now().isoformat()} | what)

    def _write(self, kind: str, lines: Sequence[bytes], timeouts: timedelta = _PATIENCE) -> None:
        retrying = Retrying(
            # The first attempt may itself hold the lease of the file that is being rewritten.
            retry=retry_if_exception_type((Unavailable, Conflict)),
            wait=wait_exponential_jitter(multiplier=0.2, max=5),
            stop=stop_after_delay(timeouts.total_seconds()),
            reraise=True,
        )
        retrying(self._put, self._path(kind), b"".join(lines))
        self._number += 1
        self._beaten = self._hdfs.now()

    def _put(self, path: str, content: bytes) -> None:
        if not self._number:
            # One after the other: of folders that are made on the way to another nobody sets the mode.
            make_own_folder(self._hdfs, self._folder.removesuffix(_AUDIT), FolderKind.LEASES.mode)
            make_own_folder(self._hdfs, self._folder, FolderKind.LEASES.mode)
        # The name is unique to us: an existing file comes from this same attempt, whose answer was lost.
        self._hdfs.write(path, content, overwrite=True, permission=_FILE_MODE)


def read_journal(
    files: OwnFiles, folder: str, since: datetime | None = None, *, but: str | None = None, only: str | None = None
) -> Iterator[JournalRecord]:
    """Yield the records of every run but one that wrote since then, oldest run first, with one in memory at a time.

    With `only` they are those of this action.
    """
    place = f"{folder.rstrip('/')}{_AUDIT}"
    for run, of_one in sorted(_by_run(files, place, since).items()):
        if run != but and (since is None or max(file.modified for file in of_one) >= since):
            yield from _records(files, place, of_one, only)


def runs_at_work(files: OwnFiles, place: str, now: datetime) -> list[RunAtWork]:
    """Return the runs in this folder of records that began, have not ended, and wrote something lately."""
    since = now - _SILENT_AFTER
    runs = _by_run(files, place, since).values()
    lately = [of_one for of_one in runs if max(file.modified for file in of_one) >= since]
    return [run for of_one in lately if (run := _at_work(files, place, of_one))]


def _by_run(files: OwnFiles, place: str, since: datetime | None) -> dict[str, list[FileStatus]]:
    """List each run's files of records, in the order in which they were begun; of runs that may have worked since."""
    runs: dict[str, list[FileStatus]] = {}
    # A run is named after the moment at which it began.
    after = (since - _LONGEST_RUN).date().isoformat().replace("-", "") if since else ""
    for file in sorted(files.list(place, after), key=lambda file: file.name):
        if match := _NAME.fullmatch(file.name):
            runs.setdefault(match["run"], []).append(file)
    return runs


def _at_work(own: OwnFiles, place: str, files: Sequence[FileStatus]) -> RunAtWork | None:
    first, last = (list(_lines(own.text(f"{place}/{file.name}"))) for file in (files[0], files[-1]))
    begun = next((line for line in first if line.get("action") == _RUN), None)
    if begun is None or any(line.get("action") == _RUN and line.get("why") for line in last):
        return None
    return RunAtWork(begun["run"], begun["who"], begun["path"], files[0].modified)


def _overlap(one: str, another: str) -> bool:
    return is_below(one, another) or is_below(another, one)


def _records(own: OwnFiles, place: str, files: Iterable[FileStatus], only: str | None) -> Iterator[JournalRecord]:
    intents: list[dict[str, Any]] = []
    results: dict[str, dict[str, Any]] = {}
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for file in files:
        for line in _lines(own.text(f"{place}/{file.name}")):
            action = line.get("action", _RECOVER)
            if action == _RUN or only not in (None, action):
                continue
            if "-intents." in file.name:
                intents.append(line)
            elif action == _ASK:
                # Of this question: a file may be asked about again, and HDFS's clock goes back by up to a second.
                answers[line["path"], line.get("asked", "")] = line
            else:
                results[line["path"]] = line
    intended = {intent["path"] for intent in intents if intent.get("action") != _ASK}
    for intent in intents:
        path = intent["path"]
        found = answers.get((path, intent["at"])) if intent.get("action") == _ASK else results.get(path)
        yield _record(own.user, intent, found)
    # A recovery that was never requested has a result and no intent.
    yield from (_record(own.user, result, result) for path, result in results.items() if path not in intended)


def _record(owner: str, intent: dict[str, Any], result: dict[str, Any] | None) -> JournalRecord:
    action = intent.get("action", _RECOVER)
    outcome = None if action == _ASK else _outcome(result)
    return JournalRecord(
        run=intent["run"],
        action=action,
        path=intent["path"],
        reason=intent.get("reason", ""),
        at=_time(intent),
        by=RunAuthor(intent["who"], intent["principal"]),
        holder=intent.get("holder"),
        outcome=outcome,
        why=result.get("why", "") if result else OUTCOME_MEANS[outcome] if outcome else "",
        owner=owner,
        answered=_time(result) if result and action == _ASK else None,
        recovery=result if result and outcome else {},
    )


def _outcome(result: Mapping[str, Any] | None) -> Outcome:
    """Return the outcome; UNCONFIRMED also if another version wrote one that this version doesn't know."""
    outcome = result.get("outcome") if result else None
    return Outcome(outcome) if outcome in set(Outcome) else Outcome.UNCONFIRMED


def _time(line: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(line["at"])


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _lines(text: str) -> Iterator[dict[str, Any]]:
    """Yield all lines but unreadable ones, such as the last line of a writer that was killed in the middle of it."""
    for line in text.split("\n"):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict) and fields.keys() >= _IN_EVERY_LINE:
            yield fields
