"""A minicluster for tests: most of their connections act as `streamer` or `gateway`, who are supervisors there, too."""

from __future__ import annotations

from getpass import getuser

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE
from airflow_kstream.supervise.clusters.session import open_session
from tests.live.streams import cluster

# By their names on HDFS: streamer's is that of the user who runs the tests.
SUPERVISORS = (getuser(), "gateway")


def bring_up(plan: MiniclusterConfig) -> Minicluster:
    """Start a minicluster, and name its supervisors in its state_dir. Raises as `Minicluster.up`."""
    minicluster = Minicluster.up(plan)
    try:
        with cluster(minicluster, "supervisor") as opened, open_session(opened, opened.watcher) as session:
            names = "".join(f"{name}\n" for name in SUPERVISORS)
            session.hdfs.write(f"{opened.state_dir}/{SUPERVISORS_FILE}", names, permission="644")
    except BaseException:
        minicluster.down()
        raise
    return minicluster
