"""Properties of every recovery, regardless of what happens to the files and the cluster meanwhile."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.model.leases.limits import RecoveryLimits
from tests.examples import examples
from tests.simulated.lease_hdfs import AGAIN_AFTER, FATES, LOST_LEASE, SECOND, SimulatedHdfs, let_happen

_ANSWERS = (None, None, None, LOST_LEASE, Denied("no"))
# One draw for a file, and strategies that are made once: a cluster has up to 40 files, and drawing them takes long.
_FILE = st.sampled_from(
    [
        {"host": host, "closes": closes, "coded": coded, "answer": answer}
        for host, closes, coded, answer in product(("dn1", "dn2", "dn3"), (False, True), (False, True), _ANSWERS)
    ]
)
_FILES, _EVENTS = st.integers(1, 40), st.integers(0, 12)
_EVENT = st.tuples(st.sampled_from(FATES), st.integers(0, 39), st.floats(0, 300), st.floats(0, 200))
_CLUSTER = st.builds(
    SimulatedHdfs,
    per_second=st.integers(1, 500),
    version=st.sampled_from(["3.4.3", "2.7.7"]),
    width=st.sampled_from([1, 7, 500]),
)


@st.composite
def troubled_clusters(draw: st.DrawFn) -> SimulatedHdfs:
    hdfs = draw(_CLUSTER)
    for number in range(draw(_FILES)):
        hdfs.add(f"/data/part-{number}", **draw(_FILE))
    for _ in range(draw(_EVENTS)):
        fate, number, seconds, lasts = draw(_EVENT)
        let_happen(hdfs, fate, f"/data/part-{number % len(hdfs.files)}", seconds, lasts)
    return hdfs


@given(troubled_clusters(), st.sampled_from([RecoveryLimits(), RecoveryLimits.unlimited()]))
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_recovery_never_requests_a_changed_file_and_ends_every_file_once(
    hdfs: SimulatedHdfs, limits: RecoveryLimits
) -> None:
    """The simulated HDFS checks every request: see `SimulatedHdfs._check_request`."""
    targets = hdfs.targets()
    run = hdfs.recover(limits, targets)
    assert [recovery.path for recovery in run.recoveries] == [target.path for target in targets]
    assert Counter(r.path for r in hdfs.written) == Counter(t.path for t in targets)
    asked = Counter(path for _, path in hdfs.requests)
    for recovery in run.recoveries:
        assert recovery.asked == asked[recovery.path]
        if recovery.outcome in (Outcome.CLOSED, Outcome.GAVE_UP, Outcome.UNCONFIRMED):
            assert recovery.asked
    assert hdfs.time < RecoveryLimits().deadline * 45


@given(troubled_clusters())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_recovery_never_repeats_a_request_too_soon(hdfs: SimulatedHdfs) -> None:
    hdfs.version = "3.4.3"
    accepted: dict[str, timedelta] = {}

    def note(path: str, answer: object) -> None:
        if answer is False:
            last = accepted.get(path, -2 * AGAIN_AFTER)
            # Around a failover it is unknown which NameNode received the request.
            assert hdfs.time - last >= AGAIN_AFTER or last <= hdfs.active_since + 5 * SECOND
            accepted[path] = hdfs.time

    hdfs.at_answer = note
    hdfs.recover()
