"""The checks applied to facts: one finding for each root, and what could not be decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, NotKnown, known
from airflow_kstream.model.finding import DoctorReport, Finding, NotChecked, Severity, UndecidedCheck, by_severity
from airflow_kstream.policy.doctor.check import Check, FindingDraft
from airflow_kstream.policy.doctor.checks import CHECKS

_Outcome = FindingDraft | UndecidedCheck


def examine(facts: ClusterFacts, checks: Sequence[Check] = CHECKS) -> DoctorReport:
    """Apply all checks. One without a finding has passed, unless a fact was missing."""
    findings: list[Finding] = []
    undecided: list[UndecidedCheck] = []
    quiet: list[Check] = []
    for check in checks:
        outcomes = list(_outcomes(check, facts))
        findings += _findings(check, [one for one in outcomes if isinstance(one, FindingDraft)])
        undecided += _merged([one for one in outcomes if isinstance(one, UndecidedCheck)])
        quiet += [] if outcomes else [check]
    idle = [check.id for check in quiet if not check.of_cluster and not facts.streams]
    passed = [check.id for check in quiet if check.id not in idle]
    return DoctorReport(
        by_severity(findings),
        tuple(undecided),
        passed=tuple(passed),
        idle=tuple(idle),
        blind=isinstance(facts.confs.namenode, NotChecked) and isinstance(facts.confs.resourcemanager, NotChecked),
    )


def _outcomes(check: Check, facts: ClusterFacts) -> Iterator[_Outcome]:
    if check.of_cluster:
        yield from _tried(check, check.of_cluster(facts))
    if check.of_stream is None:
        return
    try:
        streams = known(facts.streams)
    except NotKnown as missing:
        yield UndecidedCheck(check.id, missing.fact)
        return
    for stream in streams:
        yield from _tried(check, check.of_stream(facts, stream), stream.name)


def _tried(check: Check, looks: Iterator[FindingDraft], *streams: str) -> Iterator[_Outcome]:
    try:
        yield from looks
    except NotKnown as missing:
        yield UndecidedCheck(check.id, missing.fact, streams)


def _findings(check: Check, found: Iterable[FindingDraft]) -> Iterator[Finding]:
    """Make one finding of all that have one root: the worst severity, and the concerns of all."""
    roots: dict[str, list[FindingDraft]] = {}
    for one in found:
        roots.setdefault(one.about, []).append(one)
    for about, same in roots.items():
        worst = min(same, key=lambda one: list(Severity).index(one.severity))
        concerns = tuple(concern for one in same for concern in one.concerns)
        yield Finding(check.id, worst.severity, worst.words, worst.fix, worst.proof, check.source, about, concerns)


def _merged(undecided: Iterable[UndecidedCheck]) -> Iterator[UndecidedCheck]:
    """Make one of all that lack the same fact for the same reason."""
    facts: dict[NotChecked, UndecidedCheck] = {}
    for one in undecided:
        before = facts.get(one.fact)
        facts[one.fact] = replace(one, streams=(*before.streams, *one.streams)) if before else one
    yield from facts.values()
