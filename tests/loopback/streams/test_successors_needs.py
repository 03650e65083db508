"""What a successor needs is asked before its predecessor is stopped: queue, files, checkpoints.

Simulated servers, because a queue that drains and a folder that refuses are wanted by the moment; what the real
ResourceManager's page and the real NameNode say is the business of tests/real/cluster/test_successor.py.
"""

from __future__ import annotations

import pytest

from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import STRANGE, Answer, introduction, said, serving


@pytest.mark.parametrize("answer", [*STRANGE.values(), said({"scheduler": {"schedulerInfo": {}}})])
def test_a_strange_page_of_the_scheduler_is_no_queue(answer: Answer) -> None:
    with serving({"/info": introduction(), "/scheduler": answer}) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        with pytest.raises((Unavailable, Denied, NotFound)):
            yarn.queues()
        yarn.close()
