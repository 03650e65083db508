"""Streams for people: watched ones as a table, the evidence of a stall and a state_dir's leftovers as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from rich.table import Table

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.names import called
from airflow_kstream.model.streams.plan import Obstacle, Phase, Report, Settled
from airflow_kstream.model.streams.stall import LATE, Pulse
from airflow_kstream.policy.streams.restart.freeze import not_restarted
from airflow_kstream.supervise.streams.folder.run import named
from airflow_kstream.supervise.streams.housekeeping import CleaningReport
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.pulse.evidence import Evidence
from airflow_kstream.views.tables import NOT_KNOWN, add, ago, cell, table

_FRAMES = 6
_NOTHING = "nothing stood still: no task, and no query, was at the same place in each dump"

_KINDS_SHOWN = 3
_HEADINGS, _FORETOLD = ("stream", "generation", "state", "last commit", "horizon"), "foretold"
# Who asked the ResourceManager knows better than the conf folder when logs are lost.
_SAYS_OF_LOGS = ("(rm-privileges)", "(rm-proxyuser)")


def streams_table(verdicts: Mapping[str, Verdict], *, by_trouble: bool = False) -> Table:
    """Return a row for each stream, by name, or those in trouble first: a screen may be too small for all.

    What the doctor expects is a column if it expects anything.
    """
    shown = any(verdict.credentials.foretold for verdict in verdicts.values())
    rows = table(*_HEADINGS, *([_FORETOLD] if shown else []))
    for stream, verdict in sorted(verdicts.items(), key=lambda pair: (by_trouble and _is_well(pair[1]), pair[0])):
        foretold = [cell(*verdict.credentials.foretold, style="yellow")] if shown else []
        number = str(verdict.generation or "")
        which = called(stream, verdict.people.app_name), number
        add(rows, *which, _state(verdict), _last_commit(verdict), _horizon(verdict), *foretold)
    return rows


def _is_well(verdict: Verdict) -> bool:
    """Return whether nothing of it is for a person to look at: it makes progress, or rests as a person wants it to."""
    if verdict.step is None or verdict.past.blocked or verdict.credentials.foretold:
        return False
    if not verdict.lives:
        return isinstance(verdict.step, Settled) and verdict.step.phase in {Phase.HELD, Phase.STOPPED}
    return verdict.progress.pulse in {Pulse.HEALTHY, Pulse.IDLE, None}


def _state(verdict: Verdict) -> str:
    # What the checkpoint shows of a generation that ended is past.
    when = ", " if verdict.lives else "; last seen "
    pulse = f"{when}{verdict.progress.pulse}{_trouble(verdict)}" if verdict.progress.pulse else ""
    # The first line names the error; a Java stack trace follows, which --json has whole.
    failure = "".join(f": {line}" for line in verdict.past.failure.strip().splitlines()[:1])
    return f"{_words(verdict)}{pulse}{failure}{_ends(verdict)}{_frozen(verdict)}{_authors(verdict)}"


def _trouble(verdict: Verdict) -> str:
    """Return why it does not get on as it should, which its phase alone hides: YARN calls it RUNNING all the same."""
    beat = verdict.progress.heartbeat
    late = beat is not None and beat.pulse in LATE and beat.why not in verdict.why
    return f": {beat.why}" if late and beat and beat.why else ""


def _words(verdict: Verdict) -> str:
    """Return what stands in the way before everything else, in the words of the task's log."""
    blocked = verdict.past.blocked
    if blocked is None:
        return verdict.why
    why = f"{verdict.why}; {blocked.why}" if blocked.by is Obstacle.PREFLIGHT else blocked.why
    return f"{blocked}: {why}"


def _ends(verdict: Verdict) -> str:
    """Return how often it ended within a day though nobody planned it, with the last kinds."""
    ends = verdict.past.ends
    if not ends:
        return ""
    kinds = ", ".join(end.cause for end in ends[-_KINDS_SHOWN:])
    more = "... " if len(ends) > _KINDS_SHOWN else ""
    times = "once" if len(ends) == 1 else f"{len(ends)} times"
    return f"; ended unplanned {times} within a day ({more}{kinds})"


def _frozen(verdict: Verdict) -> str:
    if verdict.people.freeze_warning:
        return f"; frozen, {verdict.people.freeze_warning}"
    return "; frozen" if verdict.people.freeze else ""


def _authors(verdict: Verdict) -> str:
    """Return what of its folder counts for nothing, and what is not proven: neither stops or starts anything."""
    people = verdict.people
    strange = f"; strangers wrote in its folder: {named(people.strangers_files)}" if people.strangers_files else ""
    unproven = f"; it is not proven that it runs as {people.unproven}" if people.unproven else ""
    return f"{strange}{unproven}"


def _last_commit(verdict: Verdict) -> str:
    age = verdict.progress.heartbeat.commit_age if verdict.progress.heartbeat else None
    return "" if age is None else ago(age)


def _horizon(verdict: Verdict) -> str:
    """Return when the credentials end that are counted, the services whose are not, and from when logs are lost."""
    if verdict.step is not None and not verdict.lives:
        return "nothing runs"
    others = f"; not counted: {', '.join(verdict.credentials.uncounted)}" if verdict.credentials.uncounted else ""
    return f"{_counted(verdict)}{_until_then(verdict)}{others}{_replaced(verdict)}{_logs(verdict)}"


def _replaced(verdict: Verdict) -> str:
    """Return from when on it can't replace a worker that it loses, and that nobody confirms that it can."""
    replacement = verdict.credentials.replacement
    if replacement is None or verdict.seen is None:
        return ""
    told = (replacement.words(verdict.seen.now), replacement.silent)
    return "".join(f"; {words}" for words in told if words)


def _until_then(verdict: Verdict) -> str:
    """Return what is done before the end: nothing, of what a held stream runs."""
    if not (isinstance(verdict.step, Settled) and verdict.step.phase is Phase.HELD):
        return _pushes(verdict)
    remaining = verdict.credentials.remaining
    return f"; {not_restarted(remaining)}" if remaining is not None else ""


def _pushes(verdict: Verdict) -> str:
    """Return when fresh tokens move the horizon, and for how long nobody may be there to push them."""
    refreshed = verdict.credentials.refreshed
    if refreshed is None:
        return ""
    if refreshed.trouble or refreshed.due is None:
        return f"; {refreshed.trouble or 'it has not shown yet that it takes fresh tokens'}"
    when = f"in {format_duration(refreshed.due)}" if refreshed.due > timedelta() else "now"
    said = f"; fresh tokens are pushed {when}"
    if refreshed.tolerance is None or refreshed.restart_tolerance is None:
        return said
    tolerance, restart = map(format_duration, (refreshed.tolerance, refreshed.restart_tolerance))
    return f"{said}, and nobody need be there for {tolerance} from then on ({restart} with restarts instead)"


def _logs(verdict: Verdict) -> str:
    """Return what the end of its launch's tokens costs it, and from when, unless that is its horizon."""
    credentials, left = verdict.credentials, verdict.credentials.logs_left
    if left is None or left == credentials.remaining:
        return ""
    if any(sentence.endswith(_SAYS_OF_LOGS) for sentence in credentials.foretold):
        return ""
    lost = "its logs are not aggregated"
    if credentials.may_retry:
        lost = f"{lost} and its ApplicationMaster can't be started again"
    return (
        f"; {lost} if it ends in {format_duration(left)} or later" if left > timedelta() else f"; {lost} when it ends"
    )


def _counted(verdict: Verdict) -> str:
    remaining, token = verdict.credentials.remaining, verdict.credentials.token
    if remaining is None:
        return "none" if verdict.horizon_known else NOT_KNOWN
    end = f", the end of {token}" if token else ""
    if remaining < timedelta():
        return f"{format_duration(-remaining)} ago{end}"
    return f"in {format_duration(remaining)}{end}"


def errors_of(report: Report) -> Iterator[str]:
    """Return what a person has to hear of a reconcile: an end, or what keeps the next generation from following."""
    if report.phase in {Phase.BACKING_OFF, Phase.KILLED}:
        yield report.why
    if report.declaration.owner_doubt:
        yield f"nothing will follow its running generation: {report.declaration.owner_doubt}"
    if report.declaration.failed_spec:
        yield report.declaration.failed_spec


def warnings_of(report: Report) -> Iterator[str]:
    """Return what else a reconcile found, and did nothing about."""
    if report.declaration.spec_doubt:
        yield f"{report.declaration.spec_doubt} (on_change restarts nothing)"
    if report.freeze:
        yield f"the cluster is {report.freeze}"
    yield from report.foretold
    for field in report.declaration.spec_differences:
        yield f"the declared {field} differs from what runs (on_change: report)"


def evidence_lines(found: Evidence) -> Iterator[str]:
    """Yield what hangs, each with its innermost frames; then what could not be taken, and where all of it lies."""
    for each in found.still.hanging:
        yield str(each)
        yield from (f"    at {frame}" for frame in each.thread.frames[:_FRAMES])
    if found.dumped and not found.still.hanging:
        yield _NOTHING
    yield from found.doubts()
    yield f"kept on HDFS in {found.folder}"


def lines_of_cleaning(report: CleaningReport) -> Iterator[str]:
    """Yield a line for each file that may go, each stream that is gone, each folder that stays, and the sum."""
    if report.dry_run:
        for removal in report.removals:
            yield f"would remove {removal.path} ({removal.kind}: {removal.why})"
    for path, why in report.failed.items():
        yield f"could not remove {path}: {why}"
    for subject, why in report.gone.items():
        yield f"{subject} is gone: {why}"
    for subject, why in report.stays.items():
        yield f"{subject} stays: {why}"
    yield summary(report)


def summary(report: CleaningReport) -> str:
    """Return the sum in a sentence."""
    if report.dry_run:
        return f"{len(report.removals)} files would go; nothing was removed"
    left = f"; {len(report.failed)} could not be removed" if report.failed else ""
    return f"{len(report.removed)} of {len(report.removals)} files are removed{left}"
