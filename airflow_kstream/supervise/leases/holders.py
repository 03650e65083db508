"""Probing the holders of quiet files: each is probed once, through one of its files, to learn whether it is alive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from airflow_kstream.clients.hdfs.leases import HolderAnswer, LeaseHdfs, LeaseHdfsPool
from airflow_kstream.model.errors import Denied, KstreamError, NotFound
from airflow_kstream.model.lease import HolderLiveness, LeaseRules
from airflow_kstream.policy.leases.judgement import worth_probing
from airflow_kstream.supervise.leases.journal import Journal
from airflow_kstream.supervise.leases.survey import Finding, Survey

# The NameNode considers a lease abandoned if it was not renewed for this long (LEASE_SOFTLIMIT_PERIOD, no setting).
SOFT_LIMIT = timedelta(seconds=60)


@dataclass
class HolderProbe:
    """The probes of one run, and what they show about holders.

    Probing a dead holder's file begins its recovery and renews the rest of the holder's lease, so its other files
    look held for 60 s. Therefore one file of each holder is probed, and the answer counts for all of them. A walk of
    the tree does not name holders; there every file is probed, and the answer for a living holder names it. If a
    probe has renewed a dead holder's lease, one file of each holder so named is probed again after the 60 s.
    `journal` records probes before they are sent, and the answers. Once `stop` is set no probe is sent.
    """

    web: LeaseHdfs
    rules: LeaseRules
    tell: Callable[[str], None]
    journal: Journal
    stop: threading.Event
    soft_limit: timedelta = SOFT_LIMIT
    _lives: dict[str, HolderLiveness] = field(default_factory=dict)
    _answers: dict[str, HolderAnswer] = field(default_factory=dict)
    _silences: dict[str, str] = field(default_factory=dict)

    def ask(self, survey: Survey) -> tuple[Finding, ...]:
        """Return the findings with their holder's liveness, where a probe could tell; no finding is judged again."""
        doubtful = unprobed(survey, self.rules)
        self._ask_named(_by_holder(doubtful))
        nameless = [finding for finding in doubtful if not finding.history.file.holder]
        self._ask_nameless(nameless)
        return tuple(self._informed(finding) for finding in survey.findings)

    def _ask_named(self, files: dict[str, list[str]]) -> None:
        """Probe each holder by one file, and by the next if that told nothing: a closed file's writer may be alive."""
        while files and not self.stop.is_set():
            asked = {paths.pop(): holder for holder, paths in files.items()}
            for holder, answer in zip(asked.values(), self._recorded_and_asked(asked), strict=True):
                if answer and answer.liveness is not HolderLiveness.UNKNOWN:
                    self._lives[holder] = answer.liveness
            files = {holder: paths for holder, paths in files.items() if paths and holder not in self._lives}

    def _ask_nameless(self, findings: list[Finding]) -> None:
        if not findings:
            return
        paths = [finding.path for finding in findings]
        told = zip(paths, self._recorded_and_asked(dict.fromkeys(paths)), strict=True)
        answers = {path: answer for path, answer in told if answer}
        held = {answer.holder: path for path, answer in answers.items() if answer.holder}
        renewed_by_us = any(answer.liveness is HolderLiveness.DEAD for answer in answers.values())
        if renewed_by_us and held:
            seconds = self.soft_limit.total_seconds() + 2
            self.tell(f"waiting {seconds:.0f} s: probing one of a dead holder's files renewed its lease on the others")
            self.stop.wait(seconds)
            again = self._recorded_and_asked({path: holder for holder, path in held.items()})
            answers |= {path: answer for path, answer in zip(held.values(), again, strict=True) if answer}
        for holder, path in held.items():
            if holder:
                self._lives[holder] = answers[path].liveness

    def _recorded_and_asked(self, holders: Mapping[str, str | None]) -> list[HolderAnswer | None]:
        self.journal.asked(holders, "whether its holder lives")
        answers = [None if self.stop.is_set() else self._asked(path) for path in holders]
        self.journal.answered({path: self._words(path, answer) for path, answer in zip(holders, answers, strict=True)})
        return answers

    def _words(self, path: str, answer: HolderAnswer | None) -> str:
        if answer is None:
            return self._silences.get(path, "no longer probed")
        if answer.liveness is not HolderLiveness.UNKNOWN:
            return f"its holder is {answer.liveness}"
        return answer.refusal or ("it is closed" if answer.closed else "its recovery runs" if answer.recovering else "")

    def _asked(self, path: str) -> HolderAnswer | None:
        try:
            answer = self.web.ask_holder(path)
        except (NotFound, Denied) as error:
            answer = HolderAnswer(HolderLiveness.UNKNOWN, refusal="" if isinstance(error, NotFound) else error.message)
        except KstreamError as error:
            self.tell(f"whether the holder of {path} lives is not known: {error}")
            self._silences[path] = error.message
            return None
        self._answers[path] = answer
        return answer

    def _informed(self, finding: Finding) -> Finding:
        answer = self._answers.get(finding.path)
        holder = finding.history.file.holder or (answer.holder if answer else None)
        liveness = self._lives.get(holder, HolderLiveness.UNKNOWN) if holder else HolderLiveness.UNKNOWN
        if answer is None:
            silence = self._silences.get(finding.path, "")
            return replace(finding, liveness=liveness, refusal=silence, retryable=bool(silence))
        if liveness is HolderLiveness.UNKNOWN:
            liveness = answer.liveness
        file = replace(finding.history.file, holder=holder, host=answer.host or finding.history.file.host)
        history = replace(finding.history, file=file)
        asked = replace(finding, liveness=liveness, refusal=answer.refusal, history=history)
        return replace(asked, accepted=answer.recovering, closed=answer.closed)


def unprobed(survey: Survey, rules: LeaseRules) -> list[Finding]:
    """Return the findings of which only the holder's liveness is unknown."""
    return [finding for finding in survey.findings if worth_probing(finding.history, finding.context(survey), rules)]


def expected_refusals(pool: LeaseHdfsPool, doubtful: Sequence[Finding]) -> dict[str, Finding]:
    """Return the files for which the NameNode will refuse to tell this principal whether their holder is alive."""
    said = pool.right_to_write([finding.path for finding in doubtful])
    return {
        finding.path: replace(finding, refusal=error.message)
        for finding, error in zip(doubtful, said, strict=True)
        if isinstance(error, Denied)
    }


def withheld(survey: Survey, rules: LeaseRules, why: str) -> dict[str, Finding]:
    """Return the files whose holders would be probed if the cluster were fit for it."""
    fit = replace(survey, health=replace(survey.health, safe_mode=False))
    return {
        finding.path: replace(finding, refusal=f"no recovery is started while {why}", retryable=True)
        for finding in unprobed(fit, rules)
    }


def _by_holder(findings: list[Finding]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding.history.file.holder:
            found.setdefault(finding.history.file.holder, []).append(finding.path)
    return found
