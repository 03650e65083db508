"""The judgement of files, stuck or recoverable, under simulated checks and clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.leases.lease import Approval, HolderLiveness, JudgementContext
from airflow_kstream.policy.leases.judgement import decide, judge_file
from tests.simulated.open_files import RULES, START, STATE, Growth, checks_of, history_of

EVERY_CONSENT = Approval(allowed=True, application_finished=True, approved_by="ada")


def growths_within(longest: timedelta) -> st.SearchStrategy[Growth]:
    return st.builds(
        Growth,
        gap=st.timedeltas(min_value=timedelta(milliseconds=1), max_value=longest),
        written=st.integers(1, 1 << 30),
        new_block=st.booleans(),
        synced=st.booleans(),
        measured=st.booleans(),
    )


@given(st.lists(growths_within(timedelta(days=2)), max_size=12), st.sampled_from(HolderLiveness))
def test_no_sequence_of_checks_of_a_growing_file_ever_yields_recover(
    growths: list[Growth], holder: HolderLiveness
) -> None:
    """Regardless of its holder and of approvals, and even if some checks could not learn its length."""
    checks = checks_of(growths)
    for number, (now, _) in enumerate(checks, start=1):
        judged = judge_file(history_of(*checks[:number]), JudgementContext(now, holder), RULES)
        assert not decide(judged, EVERY_CONSENT).granted, judged


@given(
    st.lists(growths_within(RULES.leak_after - timedelta.resolution), min_size=1, max_size=8),
    st.lists(st.timedeltas(timedelta(0), timedelta(hours=8)), max_size=20),
    st.sampled_from([HolderLiveness.RENEWING, HolderLiveness.UNKNOWN]),
)
def test_a_slow_living_writers_file_is_never_recovered(
    growths: list[Growth], moments: list[timedelta], holder: HolderLiveness
) -> None:
    """It writes at least once in `leak_after`; checks fall anywhere between its writes."""
    written = checks_of([replace(growth, measured=True) for growth in growths])
    end = written[-1][0] + RULES.leak_after
    checks = [
        (moment, next(state for then, state in reversed(written) if then <= moment))
        for moment in sorted({START} | {START + offset for offset in moments if START + offset < end})
    ]
    for number, (now, _) in enumerate(checks, start=1):
        judged = judge_file(history_of(*checks[:number]), JudgementContext(now, holder), RULES)
        assert not decide(judged, EVERY_CONSENT).granted, judged


@given(st.lists(st.timedeltas(timedelta(0), timedelta(days=30)), max_size=12), st.sampled_from(HolderLiveness))
def test_age_alone_never_yields_recover(gaps: list[timedelta], holder: HolderLiveness) -> None:
    """A month of checks that never learn the file's length proves nothing."""
    unmeasured = replace(STATE, visible_length=None)
    moments = [START]
    for gap in gaps:
        moments.append(moments[-1] + gap)
    history = history_of(*((moment, unmeasured) for moment in moments))
    assert not decide(judge_file(history, JudgementContext(moments[-1], holder), RULES), EVERY_CONSENT).granted
