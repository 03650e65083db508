"""What Spark on YARN makes of our spark-submit, as its container, its pages and its RPC show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import cast

import pytest

from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.clients.spark_pages import DRIVER, SparkPages
from airflow_kstream.clients.spark_rpc import DriverRpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster_facts import DriverFacts, EffectiveConf
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import credentials_file
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import AttemptToken, DelegationToken
from airflow_kstream.model.streams.contract import pushes
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.tokens import cancel_at, mint_at
from airflow_kstream.supervise.doctor.stream_facts import driver_facts
from airflow_kstream.supervise.streams.restart.token_pushes import fresh_tokens
from airflow_kstream.supervise.tokens.push import push_by_hand, push_to_driver
from tests.contract.conftest import APP_NAME, Living
from tests.live.streams import await_that, cluster, look
from tests.live.token_pushes import lay, push, why_refused
from tests.simulated.lying_driver import LyingDriver


@pytest.fixture
def pages(session: ClusterSession, living: Living) -> Iterator[SparkPages]:
    server, identity, tls = session.yarn.active(), session.identity, session.cluster.tls
    with closing(SparkPages(server, living.application, identity, tls, 20.0)) as pages:
        yield pages


@pytest.fixture
def container(minicluster: Minicluster, session: ClusterSession, living: Living) -> Path:
    """The folder in which the driver runs."""
    driver = session.yarn.am_container(living.application)
    (folder,) = minicluster.root.glob(f"data/containers/usercache/*/appcache/{living.application}/{driver}")
    return folder


def test_an_application_has_the_tags_of_its_generation(session: ClusterSession, living: Living) -> None:
    tags = living.supervisor.stream.tags(1)
    assert session.yarn.application(living.application).tags == set(tags)
    assert [[app.id for app in session.yarn.applications(tag)] for tag in tags[1:]] == [[living.application]] * 2


def test_a_fence_lies_beside_the_driver_that_it_let_start(container: Path, living: Living) -> None:
    claim = look(living.supervisor.session, living.supervisor.spec).claim
    assert claim is not None
    assert claim.fence in {file.name for file in container.iterdir()}


def test_its_client_tells_the_tokens_that_it_was_launched_with(
    minicluster: Minicluster, container: Path, living: Living
) -> None:
    """The ResourceManager adds its own token to them, and the NodeManager writes the file."""
    credentials = read_credentials(container / "container_tokens").credentials
    by_kind = {token.kind: token.identifier for token in credentials.tokens}
    attempt, issued = by_kind["YARN_AM_RM_TOKEN"], by_kind["HDFS_DELEGATION_TOKEN"]
    assert isinstance(attempt, AttemptToken)
    assert attempt.attempt == living.application.replace("application", "appattempt") + "_000001"
    assert isinstance(issued, DelegationToken)
    claim = look(living.supervisor.session, living.supervisor.spec).claim
    (told,) = (claim and claim.credentials.tokens) or ()
    assert str(told) == "HDFS_DELEGATION_TOKEN of ha-hdfs:kstream"
    assert (told.issued, told.ends, told.renewer) == (issued.issued, issued.max_date, issued.renewer)
    assert issued.owner == minicluster.principal("streamer")


def test_a_staging_folder_is_there_as_long_as_its_application_lives(
    session: ClusterSession, living: Living, failed: Application
) -> None:
    staged = session.hdfs.names(f"/user/{getuser()}/.sparkStaging/{living.application}")
    assert "kstream_driver.py" in staged
    with pytest.raises(NotFound):
        session.hdfs.status(f"/user/{getuser()}/.sparkStaging/{failed.id}")


def test_a_driver_shows_what_it_runs_with(session: ClusterSession, living: Living) -> None:
    answers: list[DriverFacts | NotChecked] = []

    def answered() -> bool:
        """A driver that has not answered within five seconds, on a busy machine, is asked again."""
        answers.extend(driver_facts(session, [living.application]).values())
        return isinstance(answers[-1], DriverFacts)

    await_that(answered, "its driver answers")
    driver = answers[-1]
    assert isinstance(driver, DriverFacts)
    assert driver.properties["spark.yarn.tags"].split(",") == [*living.supervisor.stream.tags(1)]
    assert driver.properties["spark.app.name"] == APP_NAME
    assert (str(driver.hadoop), "httpclient" in driver.jars) == ("3.5.0", True)
    assert isinstance(driver.conf, EffectiveConf)
    assert driver.conf.duration("ipc.client.connection.maxidletime") == timedelta(seconds=10)


def test_a_driver_shows_its_executors_their_containers_and_threads(
    session: ClusterSession, pages: SparkPages, living: Living
) -> None:
    processes = {process.name: process for process in pages.processes()}
    containers = set(session.yarn.live_containers(living.application))
    # One that has just started is not known to its driver yet.
    assert {process.container for process in processes.values()} <= containers
    for name, thread in ((DRIVER, "main"), (min({*processes} - {DRIVER}), "dispatcher-Executor")):
        assert thread in {one.name for one in pages.threads(processes[name]).threads}


def test_spark_counts_the_tasks_of_each_executor(pages: SparkPages) -> None:
    assert "tasks ended" in pages.progress()


def test_a_driver_answers_a_push_and_its_executors_use_the_tokens(living: Living) -> None:
    """First it answers a test of the channel, which brings no tokens."""
    supervisor, session = living.supervisor, living.supervisor.session
    supervisor.run(Mode.WATCH)
    await_that(lambda: pushes(look(session, supervisor.spec).files, 1).answers, "its driver answers the test")
    assert "executors use them" in push(supervisor)
    assert session.hdfs.list(f"{supervisor.stream.folder}/tokens") == ()
    assert session.yarn.application(living.application).alive


def test_a_younger_token_with_a_wrong_password_replaces_no_good_one(living: Living) -> None:
    """Its identifier is the true one. The good one that comes next is used."""
    supervisor = living.supervisor
    before = pushes(supervisor.subject.folder.names(), 1).confirmed
    (good,) = fresh_tokens(supervisor.subject, look(supervisor.session, supervisor.spec).claim)
    broken = replace(good, password=SecretBytes(b"p" * 20))
    why = why_refused(supervisor, lay(supervisor, credentials_file((broken,)).reveal()))
    assert "the NameNode does not take the token for ha-hdfs:kstream: " in why
    assert "Mismatched response" in why
    assert pushes(supervisor.subject.folder.names(), 1).confirmed == before
    assert "executors use them" in push(supervisor)
    assert supervisor.session.hdfs.list(f"{supervisor.stream.folder}/tokens") == ()


@pytest.mark.parametrize("named", ["gateway", "hdfs"])
def test_no_token_is_made_for_an_application_of_somebody_else(
    minicluster: Minicluster, living: Living, named: str
) -> None:
    """Its driver says that it has the pusher's own token, or one of HDFS's superuser by way of the pusher."""
    gateway = Identity(minicluster.principal("gateway"), str(minicluster.keytab("gateway")))
    owner, real_user = (gateway.principal, "") if named == "gateway" else (named, gateway.principal)
    driver = LyingDriver(owner, real_user, "ha-hdfs:kstream")
    with cluster(minicluster) as opened, open_session(opened, gateway) as session:
        app = session.yarn.application(living.application)
        made_before = minted(session)
        with pytest.raises(Denied, match=f"YARN runs it as {getuser()}, and the token would be {named}'s"):
            push_to_driver(session, app, cast(DriverRpc, driver), "ha-hdfs:kstream", shorten=True)
        assert (minted(session), driver.sent) == (made_before + 1, [])


def minted(session: ClusterSession) -> int:
    """Make a token; return its number, which counts all of the cluster's."""
    token = mint_at(session.cluster.default_fs, session.cluster, session.identity)
    cancel_at(token.issuer, session.cluster, session.identity, token.identifier)
    return token.read.sequence_number


def test_a_driver_takes_tokens_over_its_own_rpc_too(living: Living) -> None:
    """Nothing in the job is prepared for it; what is pushed by hand is recorded, too."""
    session, supervisor = living.supervisor.session, living.supervisor
    pushed = push_by_hand(session, living.application, find_spark_submit(), shorten=True)
    assert (pushed.stream, pushed.others) == (supervisor.spec.name, ())
    assert pushed.old.sequence_number < pushed.new.sequence_number
    confirmed = pushes(supervisor.subject.folder.names(), 1).confirmed
    assert confirmed is not None
    assert confirmed.until == pushed.end.replace(microsecond=0)
    assert session.yarn.application(living.application).alive
