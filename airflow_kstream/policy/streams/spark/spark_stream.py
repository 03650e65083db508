"""The spark-submit of a stream: tags, fence, the driver's helper and the contract's confs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from airflow_kstream.model.clusters.cluster import Cluster, shown_variables
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import contract_terms, fence_name
from airflow_kstream.model.streams.spark_conf import (
    CONTRACT_PREFIX,
    FIXED,
    QUEUE,
    TAGS,
    connection_conf_errors,
    stream_conf_errors,
)
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamCredentials, StreamSpec
from airflow_kstream.model.streams.submission import (
    Origin,
    Setting,
    SparkDefaults,
    Submission,
    SubmissionOrder,
    from_kstream,
    from_spec,
    layered,
)
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.spark.spark_argv import (
    SparkJob,
    client_settings,
    environment_settings,
    spark_argv,
    token_settings,
)

_FENCE = from_kstream(
    "the generation's fence: used in place; once it is deleted, a late ApplicationMaster of this generation can't be "
    "localised"
)
_LAUNCHED = from_kstream("the job itself, which kstream_launcher.py runs")
_HELPER = from_kstream("kstream_driver lets the driver stop at a marker and checks that it is the newest generation")


@dataclass(frozen=True)
class Helpers:
    """The local paths of what a PySpark job is shipped with: the driver's helper and, to take fresh tokens beside the
    job, their receiver and the launcher of both."""

    driver: str
    tokens: str
    launcher: str


def stream_submission(order: SubmissionOrder, client: SparkDefaults, helpers: Helpers) -> Submission:
    """Return the words of this generation's spark-submit.

    Raises InvalidInput: when the spec or the connection sets a conf that it may not, which reading both refuses.
    """
    spec = order.spec
    _refuse("conf", stream_conf_errors(spec.conf))
    _refuse(f"spark_conf of connection {order.cluster.name}", connection_conf_errors(order.cluster.spark_conf))
    fence = f"{order.folder_uri}/{fence_name(order.generation, order.nonce)}"
    job = SparkJob(
        name=spec.app_name or spec.name,
        application=spec.application,
        arguments=spec.arguments,
        credentials=_with_keytab(spec, order.cluster),
        deploy=replace(spec.deploy, files=(*spec.deploy.files, fence)),
        client=_with_queue_of(order.cluster, client),
        settings=_settings(order, client),
        origins={"--files": _FENCE, "--name": from_spec("app_name" if spec.app_name else "name")},
    )
    plan = spark_argv(_helped(job, helpers) if spec.application.endswith(".py") else job)
    return replace(plan, notes=(*plan.notes, *_added(order.cluster)))


def _added(cluster: Cluster) -> Iterator[str]:
    """Yield what the connection adds to the client's environment, each with its source."""
    for variable in shown_variables(cluster.client.environment):
        yield f"the client's environment has {variable}: connection {cluster.name}"


def _helped(job: SparkJob, helpers: Helpers) -> SparkJob:
    """Return the job with the driver's helper and, if its tokens are refreshed, started by the launcher."""
    shipped = (helpers.driver, helpers.tokens) if job.credentials.refresh else (helpers.driver,)
    deploy = replace(job.deploy, py_files=(*job.deploy.py_files, *shipped))
    job = replace(job, deploy=deploy, origins={**job.origins, "--py-files": _HELPER})
    if not job.credentials.refresh:
        return job
    return replace(
        job,
        application=helpers.launcher,
        arguments=(job.application.rpartition("/")[2], *job.arguments),
        deploy=replace(deploy, files=(*deploy.files, job.application)),
        origins={**job.origins, "application": _LAUNCHED},
    )


def _with_keytab(spec: StreamSpec, cluster: Cluster) -> StreamCredentials:
    """Return the credentials with the path of the keytab that the client reads, declared or the connection's."""
    if not isinstance(spec.credentials, KeytabCredentials):
        return spec.credentials
    return replace(spec.credentials, keytab=identity_of(spec, cluster).keytab)


def contract_conf(stream: str, generation: int, folder: str, *, takes_tokens: bool = False) -> dict[str, str]:
    """Return the Spark confs that make a driver take part in the contract."""
    terms = contract_terms(stream, generation, folder, takes_tokens=takes_tokens)
    return {CONTRACT_PREFIX + key: value for key, value in terms.items()}


def _settings(order: SubmissionOrder, client: SparkDefaults) -> dict[str, Setting]:
    """Return the settings. Later sources win: defaults, the connection, the spec; then the protocol's own."""
    spec, cluster = order.spec, order.cluster
    settings = token_settings(spec.checkpoints, cluster.default_fs) | client_settings(client, spec.credentials)
    settings |= layered((Origin(f"connection {cluster.name}"), _without_queue(cluster)), (from_spec(), spec.conf))
    settings |= environment_settings(spec.deploy)
    return settings | _protocol(order, settings.get(TAGS))


def _without_queue(cluster: Cluster) -> dict[str, str]:
    return {key: value for key, value in cluster.spark_conf.items() if key != QUEUE}


def _with_queue_of(cluster: Cluster, client: SparkDefaults) -> SparkDefaults:
    """Return the client with a queue; that of its own connection wins over the cluster's."""
    if client.queue or QUEUE not in cluster.spark_conf:
        return client
    return replace(client, queue=cluster.spark_conf[QUEUE], source=f"connection {cluster.name}")


def _protocol(order: SubmissionOrder, user_tags: Setting | None) -> dict[str, Setting]:
    spec = order.spec
    fixed = {key: Setting(value, from_kstream(why)) for key, (value, why) in FIXED.items()}
    tags = [*order.stream.tags(order.generation), *([str(user_tags.value)] if user_tags and user_tags.value else [])]
    tagged = Setting(",".join(tags), from_kstream("the application is found by its tag, not by a log line"))
    why = from_kstream("the contract with the driver's helper")
    refresh = spec.credentials.refresh
    contract = contract_conf(str(order.stream), order.generation, order.folder_uri, takes_tokens=refresh)
    return fixed | {TAGS: tagged} | layered((why, contract))


def _refuse(where: str, errors: Iterable[str]) -> None:
    if message := "; ".join(errors):
        raise InvalidInput(f"{where} {message}")
