"""Checkpoints that are out of reach of a cluster's NameNode, or that lie in the supervisor's own folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.deploy import Savepoints
from airflow_kstream.policy.streams.restart.watchable import require_submittable, require_watchable
from tests.simulated.flink import FLINK_SPEC
from tests.simulated.yarn import TICKET_SPEC

CLUSTER = Cluster("prod", ("http://rm:1",), ("http://nn:1",), "hdfs://ns", Identity("a@R", "/k"), "/user/kstream")


@pytest.mark.parametrize(
    ("checkpoints", "says"),
    [
        (("hdfs://elsewhere/a/c",), "hdfs://elsewhere/a/c lies on hdfs://elsewhere; allowed is hdfs://ns"),
        (("hdfs://ns:8020/a/c",), "lies on hdfs://ns:8020; allowed is hdfs://ns"),
        (("/user/kstream",), "/user/kstream and the connection's state_dir /user/kstream lie in one another"),
        (("/user/kstream/",), "lie in one another"),
        (("hdfs://ns/user/kstream",), "lie in one another"),
        (("/user/kstream/orders",), "lie in one another"),
        (("/user",), "lie in one another"),
        (("/",), "lie in one another"),
        (("/a/c", "hdfs://ns/a/c/"), "hdfs://ns/a/c/ and /a/c lie in one another"),
        (("/a/c", "hdfs:///a/c"), "lie in one another"),
        (("/a/c", "hdfs://ns/a"), "lie in one another"),
        (("hdfs://b/a", "/user/kstream"), "lies on hdfs://b.*; /user/kstream and"),
    ],
)
def test_a_checkpoint_that_cannot_be_watched_is_refused_before_anything(
    checkpoints: tuple[str, ...], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        require_watchable(replace(TICKET_SPEC, checkpoints=checkpoints), CLUSTER)


@pytest.mark.parametrize(
    "checkpoints",
    [(), ("/a/c",), ("hdfs://ns/a/c",), ("hdfs:///a/c",), ("/a/c", "/a/cc"), ("/user/kstreams",), ("/user/k",)],
)
def test_a_checkpoint_beside_all_else_can_be_watched(checkpoints: tuple[str, ...]) -> None:
    require_watchable(replace(TICKET_SPEC, checkpoints=checkpoints), CLUSTER)


def test_states_in_the_supervisors_folder_are_refused_before_anything() -> None:
    spec = replace(FLINK_SPEC, savepoints=Savepoints(folder="/user/kstream/saved"))
    require_watchable(spec, CLUSTER)
    with pytest.raises(InvalidInput, match=r"savepoints\.folder: /user/kstream/saved and the connection's state_dir"):
        require_submittable(spec, CLUSTER)
    require_submittable(replace(spec, savepoints=Savepoints(folder="/user/saved")), CLUSTER)


@pytest.mark.parametrize("staging", ["/tmp/staging", "hdfs:///tmp", "hdfs://ns/tmp"])
def test_a_staging_folder_on_the_filesystem_of_the_fence_is_accepted(staging: str) -> None:
    conf = {"spark.yarn.stagingDir": staging}
    require_submittable(replace(TICKET_SPEC, conf=conf), replace(CLUSTER, spark_conf=conf))


@pytest.mark.parametrize("staging", ["hdfs://other/tmp", "hdfs://ns:8020/tmp", "viewfs://ns/tmp"])
def test_a_staging_folder_to_which_spark_would_copy_the_fence_is_refused(staging: str) -> None:
    """The connection's is refused like the declaration's."""
    conf = {"spark.yarn.stagingDir": staging}
    why = f"spark.yarn.stagingDir lies on {staging.removesuffix('/tmp')}; allowed is hdfs://ns"
    with pytest.raises(InvalidInput, match=f"conf: {why}"):
        require_submittable(replace(TICKET_SPEC, conf=conf), CLUSTER)
    with pytest.raises(InvalidInput, match=f"spark_conf of connection prod: {why}"):
        require_submittable(TICKET_SPEC, replace(CLUSTER, spark_conf=conf))
