"""The facts of running drivers: what each shows of itself, all asked at once and within a bounded time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing

from airflow_kstream.clients.client_jars import jar_versions
from airflow_kstream.clients.spark_pages import SparkEnvironment, SparkPages
from airflow_kstream.model.clusters.cluster_facts import DriverFacts, EffectiveConf, Property
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.host_facts import hadoop_of
from airflow_kstream.supervise.doctor.try_ask import try_ask

# One text for all, so that identical failures become one line.
_WHAT = "the environment of its driver"
_TO_VIEW = "the right to view the application (spark.ui.view.acls)"
# Seconds, for one driver and for all: one that hangs must not hold up the others.
_ONE, _ALL, _THREADS = 5.0, 10.0, 8


def driver_facts(session: ClusterSession, applications: Iterable[str]) -> Mapping[str, DriverFacts | NotChecked]:
    """Return what each application's driver shows behind the ResourceManager's proxy, by the application's id.

    Nothing raises: each may be missing by itself.
    """
    ids = list(applications)
    server = try_ask("the active ResourceManager", session.yarn.active) if ids else ""
    if isinstance(server, NotChecked):
        return dict.fromkeys(ids, server)
    threads = ThreadPoolExecutor(_THREADS)
    try:
        questions = {each: threads.submit(_driver, session, server, each) for each in ids}
        wait(questions.values(), timeout=_ALL)
        return {each: _answer(question) for each, question in questions.items()}
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _answer(question: Future[DriverFacts | NotChecked]) -> DriverFacts | NotChecked:
    return question.result() if question.done() else NotChecked(_WHAT, f"drivers did not answer within {_ALL:.0f}s")


def _driver(session: ClusterSession, server: str, application: str) -> DriverFacts | NotChecked:
    def read() -> DriverFacts:
        with closing(SparkPages(server, application, session.identity, session.cluster.tls, _ONE)) as pages:
            return _facts(application, pages.environment())

    return try_ask(_WHAT, read, _TO_VIEW)


def _facts(application: str, environment: SparkEnvironment) -> DriverFacts:
    jars, who = jar_versions(environment.jars), f"the driver of {application}"
    origin = f"the environment of {application}"
    conf: EffectiveConf | NotChecked = NotChecked("its Hadoop configuration", f"{who} does not show it: Spark 3 does")
    if environment.hadoop is not None:
        conf = EffectiveConf(who, {key: Property(value, origin) for key, value in environment.hadoop.items()})
    return DriverFacts(application, environment.properties, conf, jars, hadoop_of(jars, f"the class path of {who}"))
