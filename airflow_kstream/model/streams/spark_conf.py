"""Spark confs that a declaration may not set: the supervisor sets them itself, or they can only be mistakes.

One table for reading and for planning. Some of the mistakes take a job's tokens away, others hide the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import ValidationInfo
from pydantic_core import PydanticCustomError

from airflow_kstream.model.fields import Argument, ConfKey, ConfValue, FieldCheck
from airflow_kstream.model.secrets import Value
from airflow_kstream.model.versioned import PERSISTED

if TYPE_CHECKING:
    from airflow_kstream.model.clusters.cluster import Cluster


TAGS = "spark.yarn.tags"
QUEUE = "spark.yarn.queue"
STAGING = "spark.yarn.stagingDir"
# The driver's helper finds the contract's terms under it.
CONTRACT_PREFIX = "spark.kstream."
# The protocol depends on these values.
FIXED = {
    "spark.yarn.submit.waitAppCompletion": (
        "false",
        "nobody waits in a JVM; a waiting client reports FAILED when its own ticket ends while the job runs",
    ),
    "spark.yarn.maxAppAttempts": (
        "1",
        "the supervisor owns restarts; a second attempt starts on the tokens of the first (SPARK-22876, YARN-11954)",
    ),
}
_OUR_TAG = "kstream"
# Each with what to use instead. Where a flag says the same, Spark would obey one of the two and ignore the other.
_RESERVED = {
    "spark.master": "master is yarn; remove it",
    "spark.submit.deployMode": "deploy mode is cluster; remove it",
    "spark.app.name": "use app_name",
    "spark.kerberos.principal": "use credentials.principal",
    "spark.kerberos.keytab": "use credentials.keytab",
    "spark.yarn.principal": "use credentials.principal",
    "spark.yarn.keytab": "use credentials.keytab",
    QUEUE: "use deploy.queue",
    "spark.files": "use deploy.files",
    "spark.submit.pyFiles": "use deploy.py_files",
    "spark.hadoop.fs.defaultFS": "it is the connection's default_fs, on which the checkpoints are watched",
    "spark.hadoop.fs.default.name": "it is the connection's default_fs, on which the checkpoints are watched",
    "spark.hadoop.hadoop.security.authentication": "kstream is for clusters with Kerberos",
}
# A connection's queue is the default of all its streams.
_RESERVED_IN_A_CONNECTION = {key: instead for key, instead in _RESERVED.items() if key != QUEUE}
# A driver in a container has no ticket cache; it would lose its keytab's login.
_ONLY = {"spark.kerberos.renewal.credentials": ("keytab",)}
# No job on a kerberized cluster can live without HDFS tokens. It may well do without those of Hive, HBase and Kafka.
_TOKENS_OFF = re.compile(r"spark\.(yarn\.)?security\.(credentials|tokens)\.(hadoopfs|hdfs)\.enabled")
_STAGING_PATH = re.compile(r"(?P<filesystem>(?:hdfs|viewfs)://[^/\s]*)?/\S*")
_RATIO = "spark.security.credentials.renewalRatio"
# Confs of files that the client ships, and of what it downloads and loads itself (SparkSubmit's child class path).
_CONFS_OF_FILES = re.compile(
    r"spark\.(jars|archives|yarn\.jars|yarn\.archive|yarn\.dist\.(files|jars|archives|pyFiles)"
    r"|jars\.(packages|repositories|ivy|ivySettings))"
)
# What Hadoop's client runs, or reads secrets from: net.topology.script.file.name, credential.provider.path, and
# hadoop.token.files, whose tokens the job would get.
_CONFS_OF_HADOOP = re.compile(
    r"(?:spark|flink)\.hadoop\..*"
    r"(script\.file\.name|\.command|executable|provider\.path|\.keytab|keytab\.file|token\.files)",
    re.IGNORECASE,
)
_MOUNTS = re.compile(r"(?:spark|flink)\.hadoop\.fs\.viewfs.*\.link.*", re.IGNORECASE)
# With it, the client downloads also what lies elsewhere, and loads jars of it.
DOWNLOADS = "spark.yarn.dist.forceDownloadSchemes"
# What a scheme means is a setting, too: fs.hdfs.impl may be Hadoop's filesystem of local files.
_MEANING = re.compile(r"(?:spark|flink)\.hadoop\.fs\.(?:AbstractFileSystem\.)?([A-Za-z0-9+.-]+)\.impl", re.IGNORECASE)
# Confs that the supervisor itself reads or checks.
_NO_SECRETS = {TAGS, STAGING, _RATIO, *FIXED, *_ONLY}


def stream_conf_errors(conf: Mapping[str, Value]) -> Iterator[str]:
    """Yield a sentence for each conf that a stream may not set; it shows the value only if that is not a secret."""
    return _errors(conf, _RESERVED)


def connection_conf_errors(conf: Mapping[str, Value]) -> Iterator[str]:
    """Yield the same for a connection, whose confs are the defaults of all its streams."""
    return _errors(conf, _RESERVED_IN_A_CONNECTION)


def _errors(conf: Mapping[str, Value], reserved: Mapping[str, str]) -> Iterator[str]:
    for key in conf:
        if key in reserved:
            yield f"sets {key}, which it may not: {reserved[key]}"
        if key.startswith(CONTRACT_PREFIX):
            yield f"sets {key}, which it may not: {CONTRACT_PREFIX}* belongs to the supervisor"
    plain = {key: value for key, value in conf.items() if isinstance(value, str)}
    secret = sorted(_NO_SECRETS & (conf.keys() - plain.keys()))
    yield from (f"takes {key} from a secret, which it may not" for key in secret)
    yield from _wrong_values(plain)


def _wrong_values(conf: Mapping[str, str]) -> Iterator[str]:
    for key, value in conf.items():
        if key in FIXED and value != FIXED[key][0]:
            yield f"sets {key}={value!r}; allowed is {FIXED[key][0]}: {FIXED[key][1]}"
        if key in _ONLY and value not in _ONLY[key]:
            yield f"sets {key}={value!r}; allowed is {' or '.join(_ONLY[key])}"
        if _TOKENS_OFF.fullmatch(key) and value.strip().lower() != "true":
            yield f"sets {key}={value!r}; allowed is true: the job would get no HDFS tokens"
    if any(tag.strip().lower().startswith(_OUR_TAG) for tag in conf.get(TAGS, "").split(",")):
        yield f"sets {TAGS}; no tag of a job's own may begin with {_OUR_TAG}, by which the supervisor finds its own"
    if STAGING in conf and not _STAGING_PATH.fullmatch(conf[STAGING]):
        yield (
            f"sets {STAGING}={conf[STAGING]!r}; allowed is a path on the connection's default_fs: to another "
            "filesystem Spark copies the generation's fence, and a copy can't be taken from a late submission"
        )
    if not _is_share(conf.get(_RATIO, "0.75")):
        yield f"sets {_RATIO}={conf[_RATIO]!r}; allowed is more than 0 and less than 1"


def staging_elsewhere(conf: Mapping[str, Value], default_fs: str) -> str:
    """Return the filesystem of the staging folder if it is not this one, else an empty text.

    Spark uses a file of `--files` in place only on the staging folder's own filesystem (Client.copyFileToRemote).
    """
    match = _STAGING_PATH.fullmatch(str(conf.get(STAGING, "")))
    filesystem = (match["filesystem"] or "") if match else ""
    return filesystem if filesystem not in {"", "hdfs://", default_fs.rstrip("/")} else ""


def misplaced_staging(conf: Mapping[str, Value], cluster: Cluster) -> Iterator[str]:
    """Yield a sentence for the stream's conf, and for the connection's, if it puts the staging folder elsewhere."""
    for where, each in (("conf", conf), (f"spark_conf of connection {cluster.name}", cluster.spark_conf)):
        if elsewhere := staging_elsewhere(each, cluster.default_fs):
            on = f"{STAGING} lies on {elsewhere}; allowed is {cluster.default_fs}, on which its fence is used in place"
            yield f"{where}: {on}"


def files_in_conf(conf: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files that the client ships or loads by these confs, and of what viewfs mounts."""
    for key, value in conf.items():
        # A mount may have several targets (linkNfly, linkMerge); those of a regular expression have no scheme to judge.
        if (
            _CONFS_OF_FILES.fullmatch(key)
            or _CONFS_OF_HADOOP.fullmatch(key)
            or (_MOUNTS.fullmatch(key) and ":" in value)
        ):
            yield from (part.strip() for part in value.split(","))


def redefined_schemes(conf: Iterable[str]) -> frozenset[str]:
    """Return the schemes of paths to which these confs give another filesystem."""
    return frozenset(scheme[1].lower() for key in conf if (scheme := _MEANING.fullmatch(key)))


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _without(errors: Callable[[Mapping[str, Value]], Iterator[str]], reserved: Iterable[str]) -> FieldCheck:
    """Refuse a conf that has any of these errors; that it sets one of the `reserved` can be told by editors, too."""

    def checked(conf: Mapping[str, Value], info: ValidationInfo) -> Mapping[str, Value]:
        if (info.context or {}).get(PERSISTED):
            return conf
        if message := "; ".join(errors(conf)):
            raise PydanticCustomError("conf", "{wrong}", {"wrong": message})
        return conf

    names = "|".join((*map(re.escape, reserved), f"{re.escape(CONTRACT_PREFIX)}.*"))
    return FieldCheck(checked, {"propertyNames": {"not": {"pattern": f"^({names})$"}}})


SparkConf = Annotated[Mapping[ConfKey, ConfValue], _without(stream_conf_errors, _RESERVED)]
# For a connection: Airflow encrypts it, so it contains its secrets literally.
LiteralSparkConf = Annotated[Mapping[ConfKey, Argument], _without(connection_conf_errors, _RESERVED_IN_A_CONNECTION)]
