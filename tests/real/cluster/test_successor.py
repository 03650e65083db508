"""What a cluster lacks for a successor, as the real preflight names it. Nothing here is ever submitted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.streams.restart.submit import preflight
from tests.live.streams import rate_stream, reconciler


@pytest.mark.parametrize(
    ("deploy", "application", "error", "says"),
    [
        (
            Deploy(executor_memory="14g"),
            "",
            Conflict,
            "queue root.default grants no container above 14336",
        ),
        (
            Deploy(driver_memory="8g", executor_memory="8g"),
            "",
            Conflict,
            "queue root.default never has more than 14336",
        ),
        (Deploy(executor_cores=4096), "", Conflict, "its executor needs 4096 vcores, and queue root.default grants no"),
        (Deploy(queue="nowhere"), "", Conflict, "there is no queue nowhere; there are root.default"),
        (Deploy(), "hdfs:///no/such/job.py", InvalidInput, "hdfs:///no/such/job.py does not exist"),
    ],
)
def test_what_the_cluster_lacks_is_named(
    minicluster: Minicluster, deploy: Deploy, application: str, error: type[KstreamError], says: str
) -> None:
    spec = rate_stream("needy", TicketCredentials(), deploy=deploy)
    spec = replace(spec, application=application or spec.application)
    with reconciler(minicluster, spec) as supervisor, pytest.raises(error) as refused:
        preflight(supervisor.subject)
    assert says in str(refused.value)
