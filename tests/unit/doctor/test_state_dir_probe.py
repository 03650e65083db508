"""The check of a connection proves that a claim in its state_dir is granted to one supervisor alone.

The servers are simulated: an HttpFS is not part of the minicluster, whose real connection
tests/contract/test_connection.py checks.
"""

from __future__ import annotations

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.supervise.doctor.connection import _probes
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.unit.streams.folder.test_claims_are_proven import HttpFs


def probed(hdfs: SimHdfs) -> str:
    hdfs.files = {f"{CLUSTER.state_dir}/orders-0badcafe/gen-000001": ("", hdfs.now())}
    return str(_probes()["state_dir"](session_of(hdfs, SimYarn(hdfs.clock))))


def test_a_state_dir_behind_namenodes_passes() -> None:
    hdfs = SimHdfs(SimClock())
    assert probed(hdfs) == "/kstream can be written, and of two renames onto one target the second is refused"
    assert len(hdfs.files) == 1


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_state_dir_behind_httpfs_does_not(overwrites: bool) -> None:
    hdfs = HttpFs(SimClock(), overwrites=overwrites)
    with pytest.raises(InvalidInput, match=r"on http://httpfs:14000: it ignores renameoptions, as HttpFS does"):
        probed(hdfs)
    assert len(hdfs.files) == 1
