"""A stream's life on the real cluster: submitted once, adopted, restarted, stopped; never two at once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.authors import AuthoredFiles
from airflow_kstream.model.errors import Conflict, RestartAborted, SubmissionFailed
from airflow_kstream.model.logs.diagnosis import DiagnosisOutcome
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, TicketCredentials
from airflow_kstream.policy.streams.pulse.heartbeat import heartbeat
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from airflow_kstream.supervise.streams.pulse.triage import triage_generation
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.triage.look import TriageLook
from airflow_kstream.supervise.triage.scan import own_catalogue
from tests.live.cli import cluster_file, ran
from tests.live.streams import (
    BRISK_STOP,
    JOBS,
    await_commits,
    await_that,
    look,
    rate_stream,
    reconciler,
    running,
    stop,
    submit_by_hand,
)

ODD_CLAIMS = {
    "odd-broken": "no claim",
    "odd-newer": '{"version": 99, "nonce": "n"}',
    "odd-older": '{"version": 1, "nonce": "n"}',
}


def test_a_stream_with_an_instance_principal_is_adopted_and_stops_at_its_marker(minicluster: Minicluster) -> None:
    """Submit, look healthy, be found again by another supervisor, stop by marker, leave no keytab behind."""
    principal = "streamer/edge.kstream.test"
    spec = rate_stream(
        "instance", KeytabCredentials(minicluster.principal(principal), str(minicluster.keytab(principal)))
    )
    with running(minicluster, spec) as first:
        with reconciler(minicluster, spec) as second:
            report = second.run()
        assert (report.phase, report.generation, report.done) == (Phase.RUNNING, 1, ())
        assert report.horizon is not None
        assert report.horizon.hard is None
        seen = look(first.session, spec)
        assert heartbeat(spec.heartbeat, seen).pulse is Pulse.HEALTHY
        staging = f"/user/{getuser()}/.sparkStaging/{report.job.application}"
        assert any("keytab" in file.name for file in first.session.hdfs.list(staging))
        ended = stop(first)
        assert first.session.hdfs.list(staging) == ()
        verdict = triage_generation(first.session, str(report.job.application), TriageLook(own_catalogue()))
        written = [file.length for file in first.session.hdfs.list(f"/user/{getuser()}/instance/table")]
    # Not filled up to a whole block: a playground would fill the disk in a night.
    assert 0 < max(written) < 100_000
    assert (ended.phase, ended.job.succeeded) == (Phase.STOPPED, True)
    assert "its driver stopped at the marker" in " ".join(done.what for done in ended.done)
    assert verdict.outcome is DiagnosisOutcome.FINE
    assert "it was generation 1 of instance, and its supervisor stopped it" in verdict.hint


def test_a_proxy_users_stream_is_restarted_before_its_horizon_as_that_user(minicluster: Minicluster) -> None:
    """No keytab: the horizon is real, a planned restart is verified by a new commit of the next generation."""
    spec = rate_stream("proxied", ProxyUserCredentials(getuser()))
    with running(minicluster, spec, who="gateway") as supervisor:
        before = look(supervisor.session, spec)
        assert before.current is not None
        assert before.claim is not None
        assert before.current.user == getuser()
        # Due soon, and older than the next generation is when it commits. A declaration may not say less than 1m.
        age = max(timedelta(minutes=1), 1.5 * (before.now - before.claim.claimed_at))
        due_soon = replace(spec, restart=replace(spec.restart, max_age=age))
        hasty = Reconciler(replace(supervisor.subject, spec=due_soon), tell=lambda line: None)
        await_that(lambda: "Stop" in str(hasty.plan(Mode.WATCH)[1]), "its planned restart is due")
        report = hasty.run(Mode.WATCH)
        assert report.generation == 2
        await_commits(supervisor.session, spec, generation=2)
        after = look(supervisor.session, spec)
    assert after.claim is not None
    first = next(app for number, app in after.applications if number == 1)
    assert first.finished is not None
    assert first.finished <= after.claim.claimed_at
    query = before.checkpoints[0].query
    assert after.checkpoints[0].query == query


def test_a_requested_restart_happens_once(minicluster: Minicluster) -> None:
    spec = rate_stream("asked", TicketCredentials())
    with running(minicluster, spec) as supervisor:
        assert request_restart(supervisor.subject, "a new jar") == 1
        assert request_restart(supervisor.subject, "a new jar") == 1
        assert supervisor.run(Mode.WATCH).generation == 2
        assert supervisor.run(Mode.WATCH).generation == 2


def test_a_successor_that_could_not_start_leaves_the_old_generation_alone(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    job = tmp_path / "rate.py"
    job.write_text((JOBS / "rate.py").read_text())
    spec = rate_stream("abort", TicketCredentials(), application=str(job))
    with running(minicluster, spec) as supervisor:
        job.unlink()
        request_restart(supervisor.subject, "try")
        with pytest.raises(RestartAborted, match="does not exist on this host"):
            supervisor.run(Mode.WATCH)
        seen = look(supervisor.session, spec)
        assert seen.current is not None
        assert seen.current.alive
        assert seen.generation == 1


def test_a_job_that_ends_by_itself_is_reported_and_the_next_ensure_starts_it(
    minicluster: Minicluster,
) -> None:
    spec = rate_stream("killed", TicketCredentials())
    with running(minicluster, spec) as supervisor:
        app = look(supervisor.session, spec).current
        assert app is not None
        ended = supervisor.session.yarn.kill(app.id, "somebody else's kill", timedelta(seconds=30))
        assert not ended.alive
        report = supervisor.run(Mode.WATCH)
        assert (report.phase, report.job.succeeded) == (Phase.ENDED, False)
        assert "somebody else's kill" in report.job.diagnostics
        again = supervisor.run(Mode.ENSURE)
        assert again.generation == 2
        # Asked of its NodeManager, which has run since before the application.
        assert any("its driver's container is complete" in done.why for done in again.done), again.done


def test_a_stream_is_held_before_it_was_ever_submitted(minicluster: Minicluster) -> None:
    spec = rate_stream("early", TicketCredentials())
    with reconciler(minicluster, spec) as supervisor:
        for state, phase in ((DesiredState.HELD, Phase.HELD), (DesiredState.STOPPED, Phase.STOPPED)):
            set_desired(supervisor.subject, state, "not before Monday")
            report = supervisor.run()
            assert (report.phase, report.generation, report.job.application) == (phase, 0, None)
        assert supervisor.subject.folder.names() == frozenset()
        order = supervisor.subject.folder.newest_order(AuthoredFiles(), supervisor.session.state.look())
        assert order is not None
        assert (order.author, order.number) == (getuser(), 2)


def test_somebody_elses_application_is_adopted_and_its_checkpoint_defended(
    minicluster: Minicluster,
) -> None:
    """A stream is not submitted while another job moves its checkpoint; adopting that job needs no restart."""
    # Longer than a batch takes on a busy machine.
    spec = rate_stream("taken", TicketCredentials(), stop=replace(BRISK_STOP, silence=timedelta(seconds=20)))
    submit_by_hand(minicluster, spec, tag="by-hand")
    with reconciler(minicluster, spec) as supervisor:
        await_that(lambda: look(supervisor.session, spec).checkpoints[0].position.commit >= 2, "it commits")
        with pytest.raises(Conflict, match="has no owner and holds data"):
            supervisor.run()
        with pytest.raises(Conflict, match="a job writes it; stop that job, or adopt it"):
            take_over(supervisor.subject, "a test", tell=print)
        app = max(supervisor.session.yarn.applications("by-hand"), key=lambda found: found.id)
        claim = adopt(supervisor.subject, app.id)
        report = supervisor.run()
        assert (report.phase, report.job.application, report.generation) == (Phase.RUNNING, app.id, claim.generation)
        with pytest.raises(Conflict, match="already runs"):
            adopt(supervisor.subject, app.id)
        assert stop(supervisor).job.application == app.id
        assert not supervisor.session.yarn.application(app.id).alive


def test_another_streams_generation_is_not_adopted_nor_its_checkpoint_shared(minicluster: Minicluster) -> None:
    original = rate_stream("original", TicketCredentials())
    with (
        running(minicluster, original) as owner,
        reconciler(minicluster, replace(original, name="thief")) as supervisor,
    ):
        app = look(owner.session, original).current
        assert app is not None
        with pytest.raises(Conflict, match="it is a generation of a stream already"):
            adopt(supervisor.subject, app.id)
        with pytest.raises(Conflict, match="belongs to stream original"):
            supervisor.run()
        with pytest.raises(Conflict, match=f"is written by {app.id} of stream original"):
            take_over(supervisor.subject, "a test", tell=print)


def test_a_broken_or_foreign_claim_keeps_no_other_stream_from_starting(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    """Each is shown with its fault; a stream beside them is submitted, watched and stopped as usual."""
    spec = rate_stream("beside", TicketCredentials())
    with reconciler(minicluster, spec) as supervisor:
        hdfs, state_dir = supervisor.session.hdfs, supervisor.session.cluster.state_dir
        for name, text in ODD_CLAIMS.items():
            hdfs.write(f"{StreamId(name, state_dir).folder}/{claim_file(1)}", text)
        try:
            with running(minicluster, spec):
                rewrite_without_lifetimes(hdfs, f"{supervisor.stream.folder}/{claim_file(1)}")
                assert supervisor.run().phase is Phase.RUNNING
                file = str(cluster_file(minicluster, "streamer", tmp_path))
                await_that(lambda: recovered(shown(file)), "the ResourceManager is no longer a fresh one", 150)
                found = shown(file)
        finally:
            for name in ODD_CLAIMS:
                hdfs.delete(StreamId(name, state_dir).folder, recursive=True)
    assert "gen-000001 can't be understood: it is not JSON" in found["odd-broken"]["why"]
    assert "its claim is of version 99" in found["odd-newer"]["why"]
    assert "its folder is of an earlier format (version 1), which is not read" in found["odd-older"]["why"]
    assert found["beside"]["why"].endswith("is RUNNING; its claim doesn't tell its lifetimes")
    assert found["beside"]["horizon"] == "token_max_lifetime"
    assert found["beside"]["horizon_seconds"] > 0


def shown(cluster_file: str) -> Any:
    return ran("streams", "status", "--json", "--cluster", cluster_file).data


def recovered(found: Any) -> bool:
    """Return whether the ResourceManager's word that an application is gone counts by now."""
    return not any("may not have recovered" in stream["why"] for stream in found.values())


def rewrite_without_lifetimes(hdfs: Hdfs, path: str) -> None:
    """Rewrite the claim as a version would that has one field more and lacks the lifetimes."""
    claim = json.loads(hdfs.read(path))
    del claim["max_lifetime_seconds"]
    claim["spec"]["flavour"] = "new"
    hdfs.write(path, json.dumps(claim), overwrite=True, permission="644")


def test_a_spark_submit_that_fails_gives_its_claim_up_and_says_why(minicluster: Minicluster) -> None:
    spec = rate_stream("refused", TicketCredentials(), conf={"spark.executor.memory": "plenty"})
    with reconciler(minicluster, spec) as supervisor:
        with pytest.raises(SubmissionFailed, match="Executor memory must be a positive number"):
            supervisor.run()
        seen = look(supervisor.session, spec)
        assert seen.claim is not None
        assert seen.claim.fence not in seen.files
        assert seen.applications == ()


def test_an_application_whose_fence_was_taken_cannot_start_late(minicluster: Minicluster) -> None:
    """A submission that YARN keeps waiting is given up; when YARN starts it at last, its driver must not run."""
    spec = rate_stream("late", TicketCredentials())
    with reconciler(minicluster, spec) as supervisor:
        minicluster.pause("nodemanager")
        try:
            assert supervisor.run().phase is Phase.STARTING
            waiting = look(supervisor.session, spec)
            assert waiting.claim is not None
            assert waiting.current is not None
            supervisor.subject.folder.take_fence(waiting.claim.fence)
        finally:
            minicluster.resume("nodemanager")
        late = waiting.current.id
        await_that(lambda: not supervisor.session.yarn.application(late).alive, "the late application ends")
        ended = supervisor.session.yarn.application(late)
        assert not ended.succeeded
        assert waiting.claim.fence in ended.diagnostics
        assert look(supervisor.session, spec).checkpoints[0].query is None
        stop(supervisor)
