"""From a spec, a cluster and a claim to the words of one spark-submit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_kstream.jobs.kstream_driver import contract_conf
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.generation import StreamId, fence_name
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.secrets import is_secret
from airflow_kstream.model.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.submission import Argument, Origin, SparkDefaults, Submission

# What the protocol stands on. A spec that says otherwise is refused rather than half obeyed.
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
_RESERVED = {
    "spark.master": "master is yarn",
    "spark.submit.deployMode": "deploy mode is cluster",
    "spark.kerberos.principal": "use credentials.principal",
    "spark.kerberos.keytab": "use credentials.keytab",
    "spark.yarn.principal": "use credentials.principal",
    "spark.yarn.keytab": "use credentials.keytab",
    "spark.yarn.queue": "use deploy.queue",
}
_FIRST_HADOOP_WITH_HDFS_9276 = (2, 8, 2)


@dataclass(frozen=True)
class SubmissionInputs:
    """Everything that decides a submission. `helper` is the local path of the driver's helper file."""

    spec: StreamSpec
    cluster: Cluster
    stream: StreamId
    generation: int
    nonce: str
    spark: SparkDefaults
    helper: str


@dataclass(frozen=True)
class _Setting:
    value: str
    origin: Origin


def submission(inputs: SubmissionInputs) -> Submission:
    """Raise InvalidInput when the spec sets a conf that the protocol owns."""
    settings = _settings(inputs)
    shown = {key: setting for key, setting in settings.items() if not is_secret(key)}
    secret = {key: setting.value for key, setting in settings.items() if is_secret(key)}
    confs = (Argument(("--conf", f"{key}={setting.value}"), setting.origin) for key, setting in sorted(shown.items()))
    application = Argument((inputs.spec.application, *inputs.spec.arguments), _spec("application and arguments"))
    return Submission(inputs.spark.binary, (*_flags(inputs), *confs, application), secret)


def identity_of(spec: StreamSpec, cluster: Cluster) -> Identity:
    """As whom the stream is submitted, stopped and its files are read."""
    match spec.credentials:
        case KeytabCredentials(principal, keytab):
            return Identity(principal, keytab=keytab)
        case ProxyUserCredentials(user):
            watcher = cluster.watcher
            return Identity(watcher.principal, watcher.keytab, watcher.ticket_cache, do_as=user)
        case TicketCredentials(principal, keytab, cache):
            if principal is None or principal == cluster.watcher.principal:
                return Identity(
                    principal or cluster.watcher.principal,
                    keytab or (None if cache else cluster.watcher.keytab),
                    cache or (None if keytab else cluster.watcher.ticket_cache),
                )
            if keytab is None and cache is None:
                raise InvalidInput(f"credentials: {principal} needs a keytab or a cache; the connection has another's")
            return Identity(principal, keytab, cache)


def _flags(inputs: SubmissionInputs) -> Iterator[Argument]:
    spec, deploy = inputs.spec, inputs.spec.deploy
    yield Argument(("--master", "yarn", "--deploy-mode", "cluster"), _kstream("the driver outlives the submitter"))
    yield Argument(("--name", spec.name), _spec("name"))
    yield from _credential_flags(inputs)
    queue, source = (deploy.queue, "spec") if deploy.queue else (inputs.spark.queue, inputs.spark.source)
    if queue:
        yield Argument(("--queue", queue), Origin(source, "queue"))
    for flag, value in (
        ("--driver-memory", deploy.driver_memory),
        ("--driver-cores", deploy.driver_cores),
        ("--executor-memory", deploy.executor_memory),
        ("--executor-cores", deploy.executor_cores),
        ("--num-executors", deploy.executors),
        ("--class", deploy.main_class),
        ("--jars", ",".join(deploy.jars)),
        ("--archives", ",".join(deploy.archives)),
    ):
        if value:
            yield Argument((flag, str(value)), _spec("deploy"))
    yield from _file_flags(inputs)


def _credential_flags(inputs: SubmissionInputs) -> Iterator[Argument]:
    match inputs.spec.credentials:
        case KeytabCredentials(principal, keytab):
            why = "the driver logs in from its own copy and makes new tokens before the old ones end"
            yield Argument(("--principal", principal, "--keytab", keytab), _spec(f"credentials: {why}"))
        case ProxyUserCredentials(user):
            yield Argument(("--proxy-user", user), _spec("credentials: the submitter gets this user's tokens, once"))
        case TicketCredentials():
            return


def _file_flags(inputs: SubmissionInputs) -> Iterator[Argument]:
    deploy = inputs.spec.deploy
    fence = f"{inputs.cluster.default_fs}{inputs.stream.folder}/{fence_name(inputs.generation, inputs.nonce)}"
    why = "used in place; once it is deleted, a late ApplicationMaster of this generation can't be localised"
    yield Argument(("--files", ",".join((*deploy.files, fence))), _kstream(f"the generation's fence: {why}"))
    helper = (inputs.helper,) if inputs.spec.application.endswith(".py") else ()
    if deploy.py_files or helper:
        why = "kstream_driver lets the driver stop at a marker and checks that it is the newest generation"
        yield Argument(("--py-files", ",".join((*deploy.py_files, *helper))), _kstream(why))


def _settings(inputs: SubmissionInputs) -> dict[str, _Setting]:
    """Later sources win: defaults, the connection, the spec; then what the protocol owns."""
    spec, cluster = inputs.spec, inputs.cluster
    _refuse_reserved(spec.conf, "conf")
    _refuse_reserved(cluster.spark_conf, f"spark_conf of connection {cluster.name}")
    settings = dict(_defaults(inputs))
    connection = Origin(f"connection {cluster.name}")
    settings |= {key: _Setting(value, connection) for key, value in cluster.spark_conf.items()}
    settings |= {key: _Setting(value, Origin("spec")) for key, value in spec.conf.items()}
    for name, value in spec.deploy.environment.items():
        for prefix in ("spark.yarn.appMasterEnv.", "spark.executorEnv."):
            settings[prefix + name] = _Setting(value, _spec("deploy.environment"))
    settings |= {key: _Setting(value, _kstream(why)) for key, (value, why) in _OURS.items()}
    settings |= dict(_contract(inputs, settings.get("spark.yarn.tags")))
    return settings


def _refuse_reserved(conf: Mapping[str, str], where: str) -> None:
    for key, value in conf.items():
        if key in _RESERVED:
            raise InvalidInput(f"{where} sets {key}, which it may not: {_RESERVED[key]}")
        if key in _OURS and value != _OURS[key][0]:
            raise InvalidInput(f"{where} sets {key}={value}; allowed is only {_OURS[key][0]}: {_OURS[key][1]}")
        if key.startswith("spark.kstream."):
            raise InvalidInput(f"{where} sets {key}; spark.kstream.* belongs to the supervisor")


def _defaults(inputs: SubmissionInputs) -> Iterator[tuple[str, _Setting]]:
    filesystems = _filesystems(inputs)
    if filesystems:
        why = "the checkpoints lie outside fs.defaultFS and need tokens of their own"
        yield "spark.kerberos.access.hadoopFileSystems", _Setting(",".join(filesystems), _kstream(why))
    if inputs.spec.credentials.renews_itself:
        why = "after a failed renewal Spark would wait an hour of a token's last hours (SPARK-37787)"
        yield "spark.security.credentials.retryWait", _Setting("10m", _kstream(why))
    version = inputs.spark.hadoop_version
    if version is not None and version < _FIRST_HADOOP_WITH_HDFS_9276:
        why = f"Hadoop {'.'.join(map(str, version))} doesn't update the tokens of an HA nameservice (HDFS-9276)"
        yield "spark.hadoop.fs.hdfs.impl.disable.cache", _Setting("true", _kstream(why))


def _filesystems(inputs: SubmissionInputs) -> list[str]:
    roots = {"/".join(point.split("/", 3)[:3]) for point in inputs.spec.checkpoints if point.startswith("hdfs://")}
    return sorted(roots - {inputs.cluster.default_fs.rstrip("/"), "hdfs:"})


def _contract(inputs: SubmissionInputs, user_tags: _Setting | None) -> Iterator[tuple[str, _Setting]]:
    tags = [*inputs.stream.tags(inputs.generation), *([user_tags.value] if user_tags else [])]
    yield (
        "spark.yarn.tags",
        _Setting(",".join(tags), _kstream("the application is found by its tag, not by a log line")),
    )
    folder = f"{inputs.cluster.default_fs}{inputs.stream.folder}"
    why = _kstream("the contract with the driver's helper")
    for key, value in contract_conf(str(inputs.stream), inputs.generation, folder).items():
        yield key, _Setting(value, why)


def _spec(why: str) -> Origin:
    return Origin("spec", why)


def _kstream(why: str) -> Origin:
    return Origin("kstream", why)
