"""The spark-submit of a stream: tags, fence, the driver's helper and the contract's confs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.contract import contract_terms, fence_name
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.spark_conf import (
    CONTRACT_PREFIX,
    FIXED,
    QUEUE,
    TAGS,
    connection_conf_errors,
    stream_conf_errors,
)
from airflow_kstream.model.stream import KeytabCredentials, StreamCredentials, StreamSpec
from airflow_kstream.model.submission import Origin, SparkDefaults, Submission, SubmissionOrder
from airflow_kstream.policy.streams.identity import identity_of
from airflow_kstream.policy.streams.spark_argv import (
    Setting,
    SparkJob,
    client_settings,
    environment_settings,
    from_kstream,
    from_spec,
    layered,
    spark_argv,
    token_settings,
)

_FENCE = from_kstream(
    "the generation's fence: used in place; once it is deleted, a late ApplicationMaster of this generation can't be "
    "localised"
)
_HELPER = from_kstream("kstream_driver lets the driver stop at a marker and checks that it is the newest generation")


def stream_submission(order: SubmissionOrder, client: SparkDefaults, helper: str) -> Submission:
    """Return the words of this generation's spark-submit. `helper` is the local path of the driver's helper file.

    Raises InvalidInput: when the spec or the connection sets a conf that it may not, which reading both refuses.
    """
    spec = order.spec
    _refuse("conf", stream_conf_errors(spec.conf))
    _refuse(f"spark_conf of connection {order.cluster.name}", connection_conf_errors(order.cluster.spark_conf))
    fence = f"{order.folder_uri}/{fence_name(order.generation, order.nonce)}"
    helpers = (helper,) if spec.application.endswith(".py") else ()
    deploy = spec.deploy
    return spark_argv(
        SparkJob(
            name=spec.name,
            application=spec.application,
            arguments=spec.arguments,
            credentials=_with_keytab(spec, order.cluster),
            deploy=replace(deploy, files=(*deploy.files, fence), py_files=(*deploy.py_files, *helpers)),
            client=_with_queue_of(order.cluster, client),
            settings=_settings(order, client),
            origins={"--files": _FENCE, "--py-files": _HELPER} if helpers else {"--files": _FENCE},
        )
    )


def _with_keytab(spec: StreamSpec, cluster: Cluster) -> StreamCredentials:
    """Return the credentials with the path of the keytab that the client reads, declared or the connection's."""
    if not isinstance(spec.credentials, KeytabCredentials):
        return spec.credentials
    return replace(spec.credentials, keytab=identity_of(spec, cluster).keytab)


def contract_conf(stream: str, generation: int, folder: str) -> dict[str, str]:
    """Return the Spark confs that make a driver take part in the contract."""
    return {CONTRACT_PREFIX + key: value for key, value in contract_terms(stream, generation, folder).items()}


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
    fixed = {key: Setting(value, from_kstream(why)) for key, (value, why) in FIXED.items()}
    tags = [*order.stream.tags(order.generation), *([str(user_tags.value)] if user_tags and user_tags.value else [])]
    tagged = Setting(",".join(tags), from_kstream("the application is found by its tag, not by a log line"))
    why = from_kstream("the contract with the driver's helper")
    contract = contract_conf(str(order.stream), order.generation, order.folder_uri)
    return fixed | {TAGS: tagged} | layered((why, contract))


def _refuse(where: str, errors: Iterable[str]) -> None:
    if message := "; ".join(errors):
        raise InvalidInput(f"{where} {message}")
