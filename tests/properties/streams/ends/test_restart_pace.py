"""The pace of restarts after ends that nobody planned."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from tests.examples import examples
from tests.simulated.restarts import DAY, POLICY, after, end
from tests.simulated.yarn import START

Life = tuple[timedelta, timedelta, dict[str, Any]]

a_life: st.SearchStrategy[Life] = st.builds(
    lambda lasted, gap, more: (timedelta(seconds=lasted), timedelta(seconds=gap), more),
    st.sampled_from([0, 30, 300, 4000, 90000]),
    st.sampled_from([0, 0, 1, 600]),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(EndKind),
            "fingerprint": st.sampled_from(["", "a", "b"]),
            "worked": st.booleans(),
            "shared": st.sampled_from([False, False, True]),
        }
    ),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(a_life, min_size=1, max_size=120), st.sampled_from([1, 5, 24]))
def test_whatever_ends_a_stream_its_budget_holds_and_it_is_tried_again(lives: list[Life], per_day: int) -> None:
    policy, ends, now = FailurePolicy(per_day=per_day), list[PastEnd](), START
    restarts: list[datetime] = []
    for number, (lasted, gap, more) in enumerate(lives, start=1):
        now += lasted + gap
        ends.append(end(number, now - START, lasted, **more))
        attempt = after(ends, policy=policy)
        assert attempt == after(ends, policy=policy), "two supervisors compute one moment"
        assert now <= attempt.at <= now + max(POLICY.probe_every, DAY)
        now = attempt.at
        if ends[-1].costs:
            restarts.append(now)
            assert sum(at > now - DAY for at in restarts) <= per_day
