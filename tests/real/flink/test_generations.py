"""Three generations of one job: a stop with savepoint, a kill, and a fence; what each leaves for the next."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import requests

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.minicluster.flink import JOB_MANAGER
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.tokens import DelegationToken
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.flink_job import FlinkCheckpoint, FlinkCheckpoints
from airflow_kstream.model.streams.generation import Desired, StreamId
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.ends.ends import end_of, log_is_asked
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from tests.live.daemons import session_as, until
from tests.live.flink import (
    FlinkRun,
    FlinkRunning,
    applications,
    await_checkpoints,
    launch_token,
    pages_of,
    rows_of,
    staging,
)
from tests.live.streams import await_that
from tests.real.flink.conftest import NewRun

PLAIN = "a-word-in-clear"
WITHOUT_AN_END = {"drain": False, "formatType": "NATIVE"}


@dataclass(frozen=True)
class Left:
    """What a generation left at its end: its checkpoints, and its staging folder's files."""

    application: Application
    checkpoints: frozenset[str]
    staging: frozenset[str]


@dataclass(frozen=True)
class Fenced:
    """Complete checkpoints and committed rows of a fenced job: after its first failure, and two failures later."""

    there: frozenset[str]
    later: frozenset[str]
    rows: frozenset[int]
    rows_later: frozenset[int]


@dataclass(frozen=True)
class Story:
    """What was seen of the generations. `savepoint` is where the first one ended."""

    runs: tuple[FlinkRun, FlinkRun, FlinkRun]
    savepoint: str
    stopped: Left
    resumed: FlinkCheckpoints
    renewed: DelegationToken
    killed: Left
    chosen: str
    restored: FlinkCheckpoint
    fenced: Fenced


@pytest.fixture(scope="module")
def story(new_run: NewRun, session: ClusterSession) -> Iterator[Story]:
    runs = (new_run("generations", 1), new_run("generations", 2), new_run("generations", 3))
    try:
        yield told(runs, session)
    finally:
        for run in runs:
            for app in session.yarn.applications(run.tag):
                session.yarn.kill(app.id, "the test is over", timedelta(seconds=60))


def told(runs: tuple[FlinkRun, FlinkRun, FlinkRun], session: ClusterSession) -> Story:
    first = runs[0].submit()
    await_checkpoints(first, 2)
    savepoint = stop(first)
    await_that(lambda: not session.yarn.application(first.application).alive, "the stopped application ends")
    # The JobManager cleans up after it has told YARN that it is done.
    await_that(lambda: not staging(session, first.application), "what its client uploaded is removed")
    stopped = left(first, session)

    renewer = runs[1].minicluster.principal("rm/localhost")
    settings = {"security.kerberos.token.provider.hadoopfs.renewer": renewer, "kstream.demo.password": PLAIN}
    second = runs[1].submit(resume(savepoint) | settings)
    await_checkpoints(second, 5)
    resumed = checkpoints(second, session)
    renewed = launch_token(second.place(JOB_MANAGER))
    session.yarn.kill(second.application, "a kill", timedelta(seconds=60))
    killed = left(second, session)

    chosen = max(killed.checkpoints, key=number)
    third = runs[2].submit(resume(f"{runs[2].minicluster.default_fs}{chosen}"))
    await_checkpoints(third, 2)
    restored = checkpoints(third, session).resumed_from
    assert restored is not None
    return Story(runs, savepoint, stopped, resumed, renewed, killed, chosen, restored, fence(third, session))


def resume(path: str) -> dict[str, str]:
    return {"execution.state-recovery.path": path, "execution.state-recovery.claim-mode": "NO_CLAIM"}


def stop(living: FlinkRunning) -> str:
    """Stop the job on the JobManager's own port, follow that through the proxy, and return the savepoint's path."""
    run = living.run
    trigger = hashlib.sha256(run.tag.encode()).hexdigest()[:32]
    with session_as(run.minicluster, "streamer") as http:
        (app,) = applications(run.minicluster, http, run.tag)
        body = {"targetDirectory": f"{run.minicluster.default_fs}{run.home}/savepoints", "triggerId": trigger}
        posted = requests.post(
            f"http://{app['amRPCAddress']}/jobs/{run.job}/stop", json=body | WITHOUT_AN_END, timeout=60
        )
        assert (posted.status_code, posted.json()) == (202, {"request-id": trigger})

        def place() -> str | None:
            answer = http.get(f"{living.proxy}/jobs/{run.job}/savepoints/{trigger}", timeout=60)
            return str(answer.json()["operation"]["location"]) if answer.ok and has_it(answer.json()) else None

        return str(until(place))


def has_it(answer: Any) -> bool:
    return bool(answer["status"]["id"] == "COMPLETED" and answer["operation"]["location"])


def left(ended: FlinkRunning, session: ClusterSession) -> Left:
    return Left(
        session.yarn.application(ended.application),
        complete(session, ended.run),
        staging(session, ended.application),
    )


def complete(session: ClusterSession, run: FlinkRun) -> frozenset[str]:
    """Return the folders of the run's complete checkpoints that are still there."""
    folders = (f"{run.checkpoints}/{name}" for name in session.hdfs.names(run.checkpoints) if name.startswith("chk-"))
    return frozenset(folder for folder in folders if "_metadata" in session.hdfs.names(folder))


def fence(living: FlinkRunning, session: ClusterSession) -> Fenced:
    """Close the folder of its checkpoints to itself, as the next generation does before it reads its resume point."""
    run = living.run
    before = checkpoints(living, session)
    session.hdfs.change_mode(run.checkpoints, "555")
    # The one that had its folder already may still complete.
    await_that(lambda: failures(living, session) > before.failed, "a checkpoint fails")
    there, rows = complete(session, run), frozenset(rows_of(session, run.rows))
    first = failures(living, session)
    await_that(lambda: failures(living, session) > first + 1, "two more checkpoints fail")
    return Fenced(there, complete(session, run), rows, frozenset(rows_of(session, run.rows)))


def failures(living: FlinkRunning, session: ClusterSession) -> int:
    return checkpoints(living, session).failed


def checkpoints(living: FlinkRunning, session: ClusterSession) -> FlinkCheckpoints:
    with closing(pages_of(session, living)) as pages:
        return pages.checkpoints(living.run.job)


def number(path: str) -> int:
    """Return the number of a checkpoint's folder."""
    return int(path.rpartition("-")[2])


def test_a_job_that_is_stopped_ends_well_and_leaves_its_savepoint_alone(story: Story, session: ClusterSession) -> None:
    """Its checkpoints go with it, though they are retained: what is lost with the savepoint's path is lost."""
    assert (story.stopped.application.state, story.stopped.application.final_status) == (
        ApplicationState.FINISHED,
        "SUCCEEDED",
    )
    assert (story.stopped.checkpoints, story.stopped.staging) == (frozenset(), frozenset())


def test_a_resumed_job_leaves_the_savepoint_whole(story: Story, session: ClusterSession) -> None:
    resumed = story.resumed.resumed_from
    assert resumed is not None
    assert (resumed.path, resumed.is_savepoint) == (story.savepoint, True)
    path = story.savepoint.removeprefix(story.runs[0].minicluster.default_fs)
    assert "_metadata" in session.hdfs.names(path)


def test_the_numbers_of_checkpoints_go_on_in_the_next_generation(story: Story) -> None:
    resumed, newest = story.resumed.resumed_from, story.resumed.newest
    assert resumed is not None
    assert newest is not None
    assert resumed.number < newest.number <= number(story.chosen) == story.restored.number


def test_a_killed_job_leaves_its_newest_checkpoints(story: Story) -> None:
    assert story.killed.application.state == ApplicationState.KILLED
    # One more than are kept, if it is killed between a new one and the removal of the oldest.
    assert len(story.killed.checkpoints) in {3, 4}
    assert story.restored.path == f"{story.runs[2].minicluster.default_fs}{story.chosen}"


def test_a_job_that_lacks_an_operator_of_its_state_says_so_in_its_log(
    story: Story, session: ClusterSession, new_run: NewRun, tmp_path: Path
) -> None:
    """YARN is told nothing of it, and the client has seen it run, or not."""
    run = new_run("generations", 4)
    lacking = replace(run, jar=without_its_sink(run.jar, tmp_path / "lacking.jar"))
    lacking.submission(resume(f"{run.minicluster.default_fs}{story.chosen}")).wait(300)
    await_that(lambda: not any(app.alive for app in session.yarn.applications(run.tag)), "it ends by itself")
    (app,) = session.yarn.applications(run.tag)
    assert app.state is ApplicationState.FAILED
    seen = Observation(
        StreamId(run.name, "/kstream"), session.hdfs.now(), Desired(), None, frozenset(), ((1, app),), ()
    )
    assert log_is_asked(seen), app.diagnostics
    container = LoggedContainer.of_link(app.logs_url)
    assert container
    logs, names = ContainerLogs(session.cluster, session.identity), FlinkEngine().words.logs

    def error() -> str:
        # Between the NodeManager's copy and the aggregated one there may be none.
        with suppress(KstreamError):
            tails = logs.tails(container, names, 100_000, 10.0)
            return FlinkEngine().last_error({name: tail.text for name, tail in tails.items()})
        return ""

    assert end_of(app.diagnostics, until(error)).kind is EndKind.STATE


def without_its_sink(job: Path, jar: Path) -> Path:
    """Write a copy of the job whose sink has another uid, of as many letters: the state of the old one fits nowhere."""
    with ZipFile(job) as source, ZipFile(jar, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            ours = name.endswith("/Rows.class")
            target.writestr(name, content.replace(b"\x00\x05files", b"\x00\x05other") if ours else content)
    return jar


def test_a_killed_job_leaves_its_keytab_and_its_settings_in_clear(story: Story, session: ClusterSession) -> None:
    folder, left = f"/user/{getuser()}/.flink/{story.killed.application.id}", story.killed.staging
    assert {"streamer.keytab", "rows.jar"} <= left
    (settings,) = (name for name in left if "config.yaml" in name)
    assert PLAIN in session.hdfs.read(f"{folder}/{settings}")


def test_a_launch_token_has_the_renewer_that_its_client_names(story: Story) -> None:
    assert story.renewed.renewer == "yarn"


def test_a_job_whose_checkpoints_folder_is_closed_commits_nothing_more(story: Story) -> None:
    assert story.fenced.later == story.fenced.there
    assert story.fenced.rows_later == story.fenced.rows


def test_no_row_is_lost_or_doubled_over_all_generations(story: Story, session: ClusterSession) -> None:
    rows = rows_of(session, story.runs[0].rows)
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) > 100
