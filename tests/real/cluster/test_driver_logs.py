"""What is recorded of the end of a job without our helper: of that, YARN only says that it exited with status 1."""

from __future__ import annotations

from datetime import timedelta

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.plan import Phase, Report
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.memory import past_ends
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.streams import await_that, look, rate_stream, reconciler


def failing(name: str, failure: str) -> StreamSpec:
    usual = rate_stream(name, TicketCredentials())
    job = usual.application.replace("rate.py", "failing.py")
    return rate_stream(name, TicketCredentials(), application=job, arguments=(*usual.arguments, failure))


def ended(supervisor: Reconciler) -> tuple[Report, PastEnd]:
    """Submit the stream and let it end; return what the watch did, and the end's record."""
    session, spec, folder = supervisor.session, supervisor.spec, supervisor.subject.folder
    supervisor.run()
    await_that(lambda: not look(session, spec).any_alive, "its job has failed")
    report = supervisor.run(Mode.WATCH)
    (end,) = past_ends(folder, folder.names())
    return report, end


def test_the_traceback_of_a_job_stands_in_the_record_of_its_end(minicluster: Minicluster) -> None:
    with reconciler(minicluster, failing("raising", "it raises")) as supervisor:
        report, end = ended(supervisor)
        assert report.phase is Phase.ENDED
        assert end.kind is EndKind.CODE
        assert end.clues.log_error.startswith("ValueError: batch 17 of /user/")
        assert end.fingerprint.startswith("ValueError: batch # of /user/")
        assert "hunter2" not in str(end)
        assert end.clues.log_error in " ".join(done.why for done in report.done)


def test_a_cause_in_the_jvm_is_found_below_the_traceback(minicluster: Minicluster) -> None:
    """A sink that does not answer is the environment's, although YARN only knows an exit status: it goes on alone."""
    with reconciler(minicluster, failing("sinking", "its sink is away")) as supervisor:
        _, end = ended(supervisor)
        await_that(lambda: supervisor.run(Mode.WATCH).generation == 2, "its backoff is over")
        assert (end.kind, end.clues.silent) == (EndKind.INFRASTRUCTURE, "HDFS")
        own, cause = end.clues.log_error.splitlines()
        assert own.startswith("py4j.protocol.Py4JJavaError: An error occurred while calling ")
        assert cause.startswith("Caused by: java.net.ConnectException: Call From ")
        if again := look(supervisor.session, supervisor.spec).current:
            supervisor.session.yarn.kill(again.id, "its end was recorded", timedelta(seconds=30))
