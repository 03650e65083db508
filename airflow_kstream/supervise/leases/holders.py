"""The knowledge about the holders of idle files: probed, foreseen for a dry run, or withheld on an unfit cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from airflow_kstream.clients.hdfs.leases import HolderAnswer, LeaseHdfsPool
from airflow_kstream.model.errors import Denied, KstreamError, NotFound
from airflow_kstream.model.leases.lease import HolderKnowledge, HolderLiveness, HolderStatus
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.findings import FileFinding, Survey
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.session import LeaseSession

# The NameNode considers a lease abandoned if it was not renewed for this long (LEASE_SOFTLIMIT_PERIOD, no setting).
_SOFT_LIMIT = timedelta(seconds=60)
_MARGIN = timedelta(seconds=2)
# For this long after a probe of a dead holder its lease looks like that of a living one.
_RENEWED_FOR = _SOFT_LIMIT + _MARGIN
# For this long what a probe showed counts: a holder that was cut off may be back. It is longer than `_RENEWED_FOR` by
# more than a round of probes takes, so that the next one meets no lease that the last one renewed.
BELIEVED_FOR = timedelta(minutes=2)
# An interrupt waits for this many probes at most.
_AT_ONCE = 32


def foresee(pool: LeaseHdfsPool, survey: Survey) -> HolderKnowledge:
    """Return the files for which the NameNode would refuse a probe by this principal. No probe is sent."""
    paths = [finding.path for finding in survey.worth_probing]
    return {
        path: HolderStatus(refusal=error.message)
        for path, error in zip(paths, pool.right_to_write(paths), strict=True)
        if isinstance(error, Denied)
    }


def withhold(survey: Survey, why: str) -> HolderKnowledge:
    """Return the files whose holders would be probed if the cluster were fit for it."""
    status = HolderStatus(refusal=f"no recovery is started while {why}", retryable=True)
    return {finding.path: status for finding in survey.in_service().worth_probing}


class HolderProbe:
    """The probes of one run, and what they show about holders: each is probed once, however often it is asked about.
    One that is dead is probed again by its next file after two minutes.

    `journal` records probes before they are sent, and the answers. Once `watcher.stop` is set no probe is sent.

    Nothing is recovered on another run's word. That it found a holder dead only explains why the lease is renewed now:
    by its probe. For a minute such a holder can't be told from a living one; then it is asked again, by one file, and
    a writer that lives has renewed its lease. What this session's own probes found within the last minute counts for
    its next run, too.

    Probing a dead holder's file begins its recovery and renews the rest of the holder's lease, so its other files
    look held for 60 s. Therefore one file of each holder is probed, and the answer counts for all of them. Where
    nobody names the holders (`NameNodeRpc.holders` says when), every file is probed, and the answer for a living
    holder names it. If a probe has renewed a dead holder's lease, one file of each holder so named is probed again
    after the 60 s.
    """

    def __init__(self, session: LeaseSession, journal: Journal, watcher: Watcher) -> None:
        self._session = session
        self._journal = journal
        self._watcher = watcher
        self._liveness: dict[str, HolderLiveness] = {}
        self._answers: dict[str, HolderAnswer] = {}
        self._failures: dict[str, str] = {}
        self._again: dict[str, datetime] = {}

    def __call__(self, survey: Survey) -> HolderKnowledge:
        """Probe the holders that are not known. Raises KstreamError: when the journal can't be written."""
        self._again = {holder: at for holder, at in self._again.items() if at > survey.at}
        for holder, at in self._session.dead_holders.items():
            if self._liveness.get(holder) is HolderLiveness.DEAD and survey.at - at > BELIEVED_FOR:
                del self._liveness[holder]
        if any(finding.history.file.holder not in self._liveness for finding in survey.worth_probing):
            mine = self._session.dead_holders
            lately = (holder for holder, at in mine.items() if at > survey.at - _SOFT_LIMIT)
            self._liveness |= dict.fromkeys(lately, HolderLiveness.DEAD)
            known = frozenset(self._liveness)
            files = _paths_by_holder(survey.worth_probing)
            nameless = [finding.path for finding in survey.worth_probing if not finding.history.file.holder]
            try:
                self._probe_named({holder: paths for holder, paths in files.items() if holder not in known})
                self._probe_nameless(nameless)
                # At once, for other runs that meet the same holders.
                self._journal.flush()
            finally:
                # Who is believed to be dead is asked again, also if a server failed in between.
                dead = (holder for holder, found in self._liveness.items() if found is HolderLiveness.DEAD)
                mine |= {holder: survey.at for holder in dead if holder not in known}
        return {finding.path: self._status(finding) for finding in survey.findings}

    def _probe_named(self, files: dict[str, list[str]]) -> None:
        """Probe each holder by one file, and by the next if that does not tell: a closed file's writer may be alive."""
        while files and not self._watcher.stop.is_set():
            holders = self._still_held({paths.pop(): holder for holder, paths in files.items()})
            answers = self._recorded_and_probed(holders) if holders else {}
            found = {holders[path]: answer.liveness for path, answer in answers.items()}
            self._liveness |= {holder: is_ for holder, is_ in found.items() if is_ is HolderLiveness.DEAD}
            self._doubt([holder for holder, is_ in found.items() if is_ is HolderLiveness.RENEWING])
            answered = self._liveness.keys() | self._again.keys()
            files = {holder: paths for holder, paths in files.items() if paths and holder not in answered}

    def _still_held(self, holders: Mapping[str, str]) -> dict[str, str]:
        """Leave out files that have another holder by now: a lease of that one tells nothing of this one's.

        Since the list was made, somebody may have begun to recover a living writer's file, and be gone.
        """
        by_now = zip(holders.items(), self._session.holders(list(holders)), strict=True)
        return {path: holder for (path, holder), now in by_now if now in (None, holder)}

    def _doubt(self, renewing: Sequence[str]) -> None:
        """Believe that these holders live, unless a probe of another run explains why their leases are renewed.

        Its record is there by now: it comes before the probe, and that came before ours.
        """
        renewed = self._journal.renewed_by_others(_RENEWED_FOR) if renewing else {}
        self._liveness |= {holder: HolderLiveness.RENEWING for holder in renewing if holder not in renewed}
        for holder in renewed.keys() & set(renewing):
            self._again[holder] = renewed[holder] + _RENEWED_FOR
            self._watcher.tell(
                f"{holder} is asked again at {self._again[holder]:%H:%M:%S} UTC: another run's probe has just renewed "
                "its lease if it is dead, so that until then it looks like a living writer"
            )

    def _probe_nameless(self, paths: list[str]) -> None:
        if not paths:
            return
        answers = self._recorded_and_probed(dict.fromkeys(paths))
        held = {answer.holder: path for path, answer in answers.items() if answer.holder}
        renewed_by_us = any(answer.liveness is HolderLiveness.DEAD for answer in answers.values())
        if held and (renewed_by_us or held.keys() & self._journal.renewed_by_others(_RENEWED_FOR).keys()):
            seconds = _RENEWED_FOR.total_seconds()
            self._watcher.tell(
                f"waiting {seconds:.0f} s: probing one of a dead holder's files renewed its lease on the others, "
                "and this NameNode does not tell whose lease a file has"
            )
            self._watcher.stop.wait(seconds)
            answers |= self._recorded_and_probed({path: holder for holder, path in held.items()})
        self._liveness |= {holder: answers[path].liveness for holder, path in held.items()}

    def _recorded_and_probed(self, holders: Mapping[str, str | None]) -> dict[str, HolderAnswer]:
        """Probe these files, given with their holders. A file is absent from the result if there was no answer."""
        self._journal.asked(holders, "to learn whether its holder is alive")
        probed = dict.fromkeys(holders, None) | dict(self._probed(list(holders)))
        self._journal.answered({path: self._words(path, answer) for path, answer in probed.items()})
        return {path: answer for path, answer in probed.items() if answer}

    def _words(self, path: str, answer: HolderAnswer | None) -> str:
        if answer is None:
            return self._failures.get(path, "not probed: the run was interrupted")
        if answer.liveness is not HolderLiveness.UNKNOWN:
            return f"its holder is {answer.liveness}"
        if answer.closed:
            return "it is closed"
        return "its recovery is already running" if answer.recovering else answer.refusal

    def _probed(self, paths: list[str]) -> Iterator[tuple[str, HolderAnswer | None]]:
        for first in range(0, len(paths), _AT_ONCE):
            if self._watcher.stop.is_set():
                return
            some = paths[first : first + _AT_ONCE]
            for path, answer in zip(some, self._session.ask_holders(some), strict=True):
                yield path, self._kept(path, answer)

    def _kept(self, path: str, answer: HolderAnswer | KstreamError) -> HolderAnswer | None:
        if isinstance(answer, NotFound | Denied):
            refusal = "" if isinstance(answer, NotFound) else answer.message
            answer = HolderAnswer(HolderLiveness.UNKNOWN, refusal=refusal)
        if isinstance(answer, KstreamError):
            self._watcher.tell(f"could not determine whether the holder of {path} is alive: {answer}")
            self._failures[path] = answer.message
            return None
        self._answers[path] = answer
        return answer

    def _status(self, finding: FileFinding) -> HolderStatus:
        path, answer = finding.path, self._answers.get(finding.path)
        holder = finding.history.file.holder or (answer.holder if answer else None)
        liveness = self._liveness.get(holder or "", HolderLiveness.UNKNOWN)
        if holder in self._again and liveness is HolderLiveness.UNKNOWN:
            return HolderStatus(name=holder, host=answer.host if answer else None, again=self._again[holder])
        if answer is None:
            failure = self._failures.get(path, "")
            return HolderStatus(liveness, refusal=failure, retryable=bool(failure))
        return HolderStatus(
            answer.liveness if liveness is HolderLiveness.UNKNOWN else liveness,
            refusal=answer.refusal,
            name=holder,
            host=answer.host,
            recovering=answer.recovering,
            closed=answer.closed,
        )


def _paths_by_holder(findings: Iterable[FileFinding]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for finding in findings:
        if finding.history.file.holder:
            paths.setdefault(finding.history.file.holder, []).append(finding.path)
    return paths
