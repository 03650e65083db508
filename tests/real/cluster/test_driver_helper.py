"""The driver's helper on the real cluster, where its folder is on HDFS behind two NameNodes and a delegation token."""

from __future__ import annotations

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.contract import claim_file, started_marker, stop_marker, stopped_marker
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.streams.folder.formats import written_stop
from tests.live.streams import await_commits, await_that, look, rate_stream, reconciler


def test_a_driver_whose_successor_was_claimed_ends_by_itself(minicluster: Minicluster) -> None:
    """It fails silently, with no marker and no further commit; an earlier NameNode failover does not blind it."""
    spec = rate_stream("superseded", TicketCredentials())
    with reconciler(minicluster, spec) as supervisor:
        supervisor.run()
        session, folder = supervisor.session, supervisor.stream.folder
        await_commits(session, spec)
        application = look(session, spec).current
        assert application is not None
        minicluster.failover()
        session.hdfs.write(f"{folder}/{claim_file(2)}", '{"generation": 2}')
        session.hdfs.write(f"{folder}/{stop_marker(1)}", written_stop(1, "tested", "tests"))
        await_that(lambda: not session.yarn.application(application.id).alive, "generation 1 is over")
        ended, names = session.yarn.application(application.id), {file.name for file in session.hdfs.list(folder)}
        position = session.hdfs.checkpoint(spec.checkpoints[0]).position
    assert ended.final_status == "FAILED"
    assert started_marker(1) in names
    assert stopped_marker(1) not in names
    assert position.offset - position.commit in (0, 1)
