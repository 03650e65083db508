"""Two jobs with the jar in their JobManagers, one with a keytab and one that lives on pushed tokens.

Both outlive the tokens of their submission, lose their TaskManagers on a node that has to fetch their files again, and
end at what their supervisor writes. Without the jar no TaskManager comes back: test_client.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Any

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.flink import JOB_MANAGER, TASK_MANAGER, empty_the_nodes_cache
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import credentials_file
from airflow_kstream.model.streams.contract import (
    applied_marker,
    claim_file,
    push_file,
    refused_marker,
    started_marker,
    stop_marker,
    tokens_file,
)
from airflow_kstream.model.streams.flink_contract import (
    Kept,
    Resume,
    StopState,
    jar_settings,
    kept_file,
    read_kept,
    read_resume,
    resume_file,
)
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import mint_at
from airflow_kstream.supervise.streams.restart.token_pushes import push_of
from tests.flink_jar import JAR
from tests.live.flink import FlinkRun, FlinkRunning, await_checkpoints, launch_token, pages_of, rows_of
from tests.live.flink_streams import OFTEN
from tests.live.streams import await_that
from tests.live.token_makers import access_as
from tests.real.flink.conftest import NewRun

WITH_A_TICKET = {
    "security.kerberos.login.keytab": None,
    "security.kerberos.login.principal": None,
    "security.kerberos.login.contexts": None,
    "security.kerberos.login.use-ticket-cache": True,
}
# Each checkpoint finds the connections to the NameNode closed, so it shows a token again.
FORGETFUL = {"flink.hadoop.ipc.client.connection.maxidletime": "500"}
LONG_HENCE = datetime(2100, 1, 1, tzinfo=UTC)
NO_CREDENTIALS = SecretBytes(b"HDTS\0\x05\xff\xff")


@dataclass(frozen=True)
class Member:
    """A job with the jar, and the stream's folder, in which anybody may write."""

    living: FlinkRunning
    session: ClusterSession
    folder: str

    @property
    def authority(self) -> str:
        """What tokens call the cluster's filesystem."""
        return f"ha-hdfs:{self.living.run.minicluster.default_fs.removeprefix('hdfs://')}"

    def names(self) -> frozenset[str]:
        return self.session.hdfs.names(self.folder)

    def read(self, name: str) -> str:
        await_that(lambda: name in self.names(), f"{name} is there")
        return self.session.hdfs.read(f"{self.folder}/{name}")

    def says(self, name: str) -> Any:
        return json.loads(self.read(name))

    def kept(self) -> Kept:
        return read_kept(self.read(kept_file(1)), 1)

    def put(self, name: str, content: str, session: ClusterSession | None = None) -> None:
        (session or self.session).hdfs.write(f"{self.folder}/{name}", content, permission="644")

    def lay(self, push: TokenPush, content: SecretBytes) -> None:
        self.session.hdfs.make_folder(f"{self.folder}/tokens", "700")
        self.session.hdfs.write_secret(f"{self.folder}/{tokens_file(push)}", content)
        self.put(push_file(push), "{}")

    def push(self) -> Any:
        """Push a fresh token, and return the answer once it is in use."""
        cluster, identity = self.session.cluster, self.session.identity
        tokens = (mint_at(cluster.default_fs, cluster, identity),)
        push = push_of(1, tokens)
        self.lay(push, credentials_file(tokens))
        return self.says(applied_marker(push))

    def issued(self) -> datetime:
        return launch_token(self.living.place(JOB_MANAGER)).issued

    def attempt(self) -> tuple[int, int]:
        """Return what changes with its TaskManager, and with each restart of its tasks."""
        (process,) = self.living.processes(TASK_MANAGER)
        with closing(pages_of(self.session, self.living)) as pages:
            return process.pid, pages.checkpoints(self.living.run.job).restored

    def lose_its_taskmanager(self) -> None:
        """Kill it, as on a node that fails, and wait until another one has made a checkpoint."""
        empty_the_nodes_cache(self.living.run.minicluster.root, self.living.application)
        (process,) = self.living.processes(TASK_MANAGER)
        with closing(pages_of(self.session, self.living)) as pages:
            seen = pages.checkpoints(self.living.run.job)
            process.kill()
            await_that(lambda: pages.checkpoints(self.living.run.job).restored > seen.restored, "it is restored")
            await_that(lambda: pages.overview().taskmanagers == 1, "another one is registered")
        await_checkpoints(self.living, 1)

    def stop(self) -> Resume:
        """Write the stop marker in place of any other, and return what became of that."""
        before = self.read(resume_file(1)) if resume_file(1) in self.names() else ""
        self.session.hdfs.delete(f"{self.folder}/{stop_marker(1)}")
        self.put(stop_marker(1), '{"version": 1, "generation": 1}')

        def answered() -> bool:
            text = self.read(resume_file(1))
            return text != before and read_resume(text, 1).state is not StopState.ASKED

        await_that(answered, "the stop is answered")
        return read_resume(self.read(resume_file(1)), 1)

    def ended(self) -> Application:
        yarn, application = self.session.yarn, self.living.application
        await_that(lambda: not yarn.application(application).alive, f"{application} ends")
        return yarn.application(application)


@dataclass(frozen=True)
class Story:
    """What was seen of both jobs. `attempts` are those of the pushed one, before and after its launch token's end."""

    keytab: Member
    ticket: Member
    dead: datetime
    answers: dict[str, Any]
    refusals: dict[str, str]
    attempts: tuple[tuple[int, int], tuple[int, int]]
    kept: dict[str, Kept]
    failed: Resume
    resume: Resume
    stopped: Application
    superseded: Application
    log: str


@pytest.fixture(scope="module")
def story(new_run: NewRun, session: ClusterSession, flinks: Minicluster) -> Iterator[Story]:
    runs = new_run("kept"), replace(new_run("pushed"), has_ticket=True)
    try:
        yield told(runs, session, flinks)
    finally:
        for run in runs:
            for app in session.yarn.applications(run.tag):
                session.yarn.kill(app.id, "the test is over", timedelta(seconds=60))


def told(runs: tuple[FlinkRun, FlinkRun], session: ClusterSession, flinks: Minicluster) -> Story:
    keytab, ticket = member(runs[0], session), member(runs[1], session, **WITH_A_TICKET)
    # Nobody renews what they were launched with; the keytab's keeper may have replaced it by now.
    dead = max(one.issued() for one in (keytab, ticket)) + flinks.plan.renew_interval
    asked = TokenPush(1, time_ns() // 1_000_000)
    with access_as(flinks, "watcher") as stranger:
        ticket.put(stop_marker(1), '{"version": 1, "generation": 1}', stranger)
        keytab.put(claim_file(3), '{"version": 1, "generation": 3}', stranger)
        ticket.put(push_file(asked), "{}")
        answers = {"test": ticket.says(applied_marker(asked)), "push": ticket.push()}
        refusals = {"garbage": refused(ticket, NO_CREDENTIALS)}
        foreign = credentials_file((mint_at(stranger.cluster.default_fs, stranger.cluster, stranger.identity),))
        refusals["of another"] = refused(ticket, foreign)
    await_that(lambda: datetime.now(UTC) > dead - timedelta(seconds=20), "the launch tokens are about to die")
    ticket.push()
    before = ticket.attempt()
    await_that(lambda: datetime.now(UTC) > dead, "the launch tokens are dead")
    await_checkpoints(ticket.living, 2)
    attempts = before, ticket.attempt()
    answers["late push"] = ticket.push()
    kept = {"keytab": keytab.kept(), "ticket": ticket.kept()}
    for one in (ticket, keytab):
        one.lose_its_taskmanager()
        ticket.push()
    # Before YARN takes them away.
    log = keytab.living.log() + ticket.living.log()
    savepoints = f"{runs[1].home}/savepoints/{runs[1].job}"
    session.hdfs.make_folder(savepoints, "555")
    failed = ticket.stop()
    session.hdfs.change_mode(savepoints, "755")
    await_checkpoints(ticket.living, 1)
    resume = ticket.stop()
    stopped = ticket.ended()
    keytab.put(claim_file(2), '{"version": 1, "generation": 2}')
    superseded = keytab.ended()
    return Story(keytab, ticket, dead, answers, refusals, attempts, kept, failed, resume, stopped, superseded, log)


def member(run: FlinkRun, session: ClusterSession, **conf: Any) -> Member:
    folder = f"/tmp/{run.name}"
    session.hdfs.make_folder(folder, "777")
    session.hdfs.change_mode(folder, "777")
    uri = f"{run.minicluster.default_fs}{folder}"
    terms = jar_settings(run.name, 1, uri, takes_tokens=run.has_ticket)
    living = run.submit({"yarn.ship-files": str(JAR), **terms, **OFTEN, **FORGETFUL, **conf})
    await_checkpoints(living, 1)
    return Member(living, session, folder)


def refused(ticket: Member, content: SecretBytes) -> str:
    push = TokenPush(1, time_ns() // 1_000_000, LONG_HENCE)
    ticket.lay(push, content)
    return str(ticket.says(refused_marker(push))["why"])


def test_it_says_that_it_runs(story: Story) -> None:
    for one in (story.keytab, story.ticket):
        said = one.says(started_marker(1))
        assert (said["contract"], said["generation"], said["application"]) == ("1", 1, one.living.application)


def test_a_push_is_answered_with_the_tokens_that_are_in_use_and_who_was_told(story: Story) -> None:
    assert story.answers["test"]["tokens"] == []
    (token,) = story.answers["push"]["tokens"]
    assert (token["kind"], token["service"]) == ("HDFS_DELEGATION_TOKEN", story.ticket.authority)
    for answer in story.answers.values():
        assert len(answer["executors"]) == 1
        assert (answer["generation"], answer["application"]) == (1, story.ticket.living.application)


def test_a_job_goes_on_past_its_launch_token_on_pushed_ones(story: Story) -> None:
    """The same TaskManager, none of whose tasks had to start again."""
    before, after = story.attempts
    assert before == after


def test_tokens_that_renew_none_of_the_jobs_own_are_refused(story: Story) -> None:
    watcher, streamer = (story.keytab.living.run.minicluster.principal(name) for name in ("watcher", "streamer"))
    assert story.refusals["garbage"] == "a number in the credentials file makes no sense"
    assert f"HDFS_DELEGATION_TOKEN of {watcher}, and this job's is a" in story.refusals["of another"]
    assert f"of {streamer}: it would act as somebody else" in story.refusals["of another"]


def test_files_of_strangers_are_logged_and_change_nothing(story: Story) -> None:
    for one, name in ((story.ticket, stop_marker(1)), (story.keytab, claim_file(3))):
        assert f"{one.folder}/{name} counts for nothing: watcher may not speak to this job" in story.log


def test_the_keeper_confirms_the_tokens_of_new_taskmanagers(story: Story) -> None:
    for one, kept in story.kept.items():
        member = {"keytab": story.keytab, "ticket": story.ticket}[one]
        (token,) = (token for token in kept.tokens if token.kind == "HDFS_DELEGATION_TOKEN")
        assert (kept.application, kept.trouble, kept.every) == (member.living.application, "", timedelta(seconds=10))
        assert token.service == member.authority
        assert token.issued is not None
        assert token.issued + member.living.run.minicluster.plan.renew_interval > story.dead
        assert kept.rewritten is not None
        assert (token.until is not None) == (one == "ticket")


def test_pushed_tokens_are_gone_from_the_folder(story: Story, session: ClusterSession) -> None:
    assert session.hdfs.names(f"{story.ticket.folder}/tokens") == frozenset()


def test_a_stop_marker_ends_the_job_with_a_savepoint(story: Story, session: ClusterSession) -> None:
    run, resume = story.ticket.living.run, story.resume
    assert (story.stopped.state, story.stopped.final_status) == (ApplicationState.FINISHED, "SUCCEEDED")
    assert (resume.state, resume.why, resume.job) == (StopState.COMPLETED, "", run.job)
    assert resume.target == f"{run.minicluster.default_fs}{run.home}/savepoints/{run.job}"
    (savepoint,) = session.hdfs.names(f"{run.home}/savepoints/{run.job}")
    assert resume.savepoint == f"{resume.target}/{savepoint}"
    assert "_metadata" in session.hdfs.names(f"{run.home}/savepoints/{run.job}/{savepoint}")


def test_a_stop_whose_savepoint_fails_says_why_and_the_next_marker_tries_again(story: Story) -> None:
    assert (story.failed.state, story.failed.savepoint) == (StopState.FAILED, "")
    assert story.failed.why
    assert story.failed.trigger != story.resume.trigger


def test_a_newer_claim_ends_the_job_and_leaves_its_checkpoints(story: Story, session: ClusterSession) -> None:
    assert not story.superseded.alive
    assert any(name.startswith("chk-") for name in session.hdfs.names(story.keytab.living.run.checkpoints))


def test_no_row_is_lost_or_doubled(story: Story, session: ClusterSession) -> None:
    rows = rows_of(session, story.ticket.living.run.rows)
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) > 100
