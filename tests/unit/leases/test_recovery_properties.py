"""What no recovery ever does, whatever happens to the files and the cluster meanwhile."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.lease_recovery import Outcome
from airflow_kstream.policy.leases.limits import RecoveryLimits, Timeouts
from tests.unit.leases.simulated_hdfs import AGAIN_AFTER, FATES, LOST_LEASE, SECOND, World, let_happen


@st.composite
def troubled_worlds(draw: st.DrawFn) -> World:
    world = World(per_second=draw(st.integers(1, 500)), version=draw(st.sampled_from(["3.4.3", "2.7.7"])))
    world.width = draw(st.sampled_from([1, 7, 500]))
    for number in range(draw(st.integers(1, 40))):
        world.add(
            f"/data/part-{number}",
            host=f"dn{draw(st.integers(1, 3))}",
            closes=draw(st.booleans()),
            coded=draw(st.booleans()),
            answer=draw(st.sampled_from([None, None, None, LOST_LEASE, Denied("no")])),
        )
    for _ in range(draw(st.integers(0, 12))):
        path = draw(st.sampled_from(list(world.files)))
        let_happen(world, draw(st.sampled_from(FATES)), path, draw(st.floats(0, 300)), draw(st.floats(0, 200)))
    return world


@given(troubled_worlds(), st.sampled_from([RecoveryLimits(), RecoveryLimits.unlimited()]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_a_changed_file_is_never_asked_for_and_every_file_gets_one_outcome(
    world: World, limits: RecoveryLimits
) -> None:
    """The world itself checks every request: see `World._check_kick`."""
    targets = world.targets()
    run = world.recover(limits, targets)
    assert [recovery.path for recovery in run.recoveries] == [target.path for target in targets]
    assert Counter(r.path for r in world.written) == Counter(t.path for t in targets)
    asked = Counter(path for _, path in world.kicks)
    for recovery in run.recoveries:
        assert recovery.asked == asked[recovery.path]
        if recovery.outcome in (Outcome.CLOSED, Outcome.GAVE_UP, Outcome.UNCONFIRMED):
            assert recovery.asked
    assert world.time < Timeouts().deadline * 45


@given(troubled_worlds())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_a_recovery_that_runs_is_not_asked_for_again_too_soon(world: World) -> None:
    world.version = "3.4.3"
    accepted: dict[str, timedelta] = {}
    requested = world._kicked

    def history(path: str) -> object:
        answer = requested(path)
        if answer is False:
            last = accepted.get(path, -2 * AGAIN_AFTER)
            # Around a failover nobody knows which NameNode it was that heard.
            assert world.time - last >= AGAIN_AFTER or last <= world.active_since + 5 * SECOND
            accepted[path] = world.time
        return answer

    world._kicked = history  # type: ignore[method-assign, assignment]
    world.recover()
