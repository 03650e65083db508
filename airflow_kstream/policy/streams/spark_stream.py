"""The spark-submit of a stream: tags, fence, the driver's helper and the contract's confs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.contract import contract_terms, fence_name
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import SecretRef, Value
from airflow_kstream.model.submission import Origin, SparkDefaults, Submission, SubmissionOrder
from airflow_kstream.policy.streams.spark_argv import (
    Setting,
    SparkJob,
    client_settings,
    environment_settings,
    from_kstream,
    from_spec,
    layered,
    refuse_confs_of_flags,
    spark_argv,
    token_settings,
)

# The protocol depends on these. A spec that sets them otherwise is refused rather than half obeyed.
_OURS = {
    "spark.yarn.submit.waitAppCompletion": (
        "false",
        "nobody waits in a JVM; a waiting client reports FAILED when its own ticket ends while the job runs",
    ),
    "spark.yarn.maxAppAttempts": (
        "1",
        "the supervisor owns restarts; a second attempt starts on the tokens of the first (SPARK-22876, YARN-11954)",
    ),
}
_CONTRACT_PREFIX = "spark.kstream."
_TAGS = "spark.yarn.tags"
# A connection's queue is the default of all its streams; it is set by a flag, as theirs are.
_QUEUE = "spark.yarn.queue"


def stream_submission(order: SubmissionOrder, client: SparkDefaults, helper: str) -> Submission:
    """Return the words of this generation's spark-submit. `helper` is the local path of the driver's helper file.

    Raises InvalidInput: when the spec or the connection sets a conf that the protocol owns.
    """
    spec = order.spec
    _refuse_reserved(spec.conf, "conf")
    _refuse_reserved(_without_queue(order.cluster), f"spark_conf of connection {order.cluster.name}")
    fence = f"{order.folder_uri}/{fence_name(order.generation, order.nonce)}"
    helpers = (helper,) if spec.application.endswith(".py") else ()
    deploy = spec.deploy
    return spark_argv(
        SparkJob(
            name=spec.name,
            application=spec.application,
            arguments=spec.arguments,
            credentials=spec.credentials,
            deploy=replace(deploy, files=(*deploy.files, fence), py_files=(*deploy.py_files, *helpers)),
            client=_with_queue_of(order.cluster, client),
            settings=_settings(order, client),
            origins={"--files": _FENCE, "--py-files": _HELPER} if helpers else {"--files": _FENCE},
        )
    )


def contract_conf(stream: str, generation: int, folder: str) -> dict[str, str]:
    """Return the Spark confs that make a driver take part in the contract."""
    return {_CONTRACT_PREFIX + key: value for key, value in contract_terms(stream, generation, folder).items()}


_FENCE = from_kstream(
    "the generation's fence: used in place; once it is deleted, a late ApplicationMaster of this generation can't be "
    "localised"
)
_HELPER = from_kstream("kstream_driver lets the driver stop at a marker and checks that it is the newest generation")


def _settings(order: SubmissionOrder, client: SparkDefaults) -> dict[str, Setting]:
    """Return the settings. Later sources win: defaults, the connection, the spec; then the protocol's own."""
    spec, cluster = order.spec, order.cluster
    settings = token_settings(spec.checkpoints, cluster.default_fs) | client_settings(client, spec.credentials)
    settings |= layered((Origin(f"connection {cluster.name}"), _without_queue(cluster)), (from_spec(), spec.conf))
    settings |= environment_settings(spec.deploy)
    return settings | _protocol(order, settings.get(_TAGS))


def _without_queue(cluster: Cluster) -> dict[str, str]:
    return {key: value for key, value in cluster.spark_conf.items() if key != _QUEUE}


def _with_queue_of(cluster: Cluster, client: SparkDefaults) -> SparkDefaults:
    """Return the client with a queue; that of its own connection wins over the cluster's."""
    if client.queue or _QUEUE not in cluster.spark_conf:
        return client
    return replace(client, queue=cluster.spark_conf[_QUEUE], source=f"connection {cluster.name}")


def _protocol(order: SubmissionOrder, user_tags: Setting | None) -> dict[str, Setting]:
    ours = {key: Setting(value, from_kstream(why)) for key, (value, why) in _OURS.items()}
    theirs = user_tags.value if user_tags else ""
    if isinstance(theirs, SecretRef):
        raise InvalidInput(f"conf.{_TAGS} refers to a secret; allowed is text: everybody can see the tags")
    tags = [*order.stream.tags(order.generation), *([theirs] if theirs else [])]
    tagged = Setting(",".join(tags), from_kstream("the application is found by its tag, not by a log line"))
    why = from_kstream("the contract with the driver's helper")
    contract = contract_conf(str(order.stream), order.generation, order.folder_uri)
    return ours | {_TAGS: tagged} | layered((why, contract))


def _refuse_reserved(conf: Mapping[str, Value], where: str) -> None:
    refuse_confs_of_flags(conf, where)
    for key, value in conf.items():
        if key in _OURS and value != _OURS[key][0]:
            raise InvalidInput(f"{where} sets {key}={value}; allowed is only {_OURS[key][0]}: {_OURS[key][1]}")
        if key.startswith(_CONTRACT_PREFIX):
            raise InvalidInput(f"{where} sets {key}; {_CONTRACT_PREFIX}* belongs to the supervisor")
