"""Settings of Flink that a declaration may not set: the supervisor sets them itself, or they can only be mistakes.

One table for reading and for planning. A setting goes by each of its names: Flink takes older ones, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import ValidationInfo
from pydantic_core import PydanticCustomError

from airflow_kstream.model.fields import Argument, ConfKey, ConfValue, FieldCheck
from airflow_kstream.model.secrets import SecretRef, Value
from airflow_kstream.model.versioned import PERSISTED

FILESYSTEMS = "security.kerberos.access.hadoopFileSystems"
_FILESYSTEMS = (FILESYSTEMS, "yarn.security.kerberos.additionalFileSystems")

TAGS = "yarn.tags"
QUEUE = "yarn.application.queue"
INTERVAL = "execution.checkpointing.interval"
RETAINED = "execution.checkpointing.num-retained"
BACKOFF = "security.delegation.tokens.renewal.retry.backoff"
SSL, CLIENT_CERTIFICATE = "security.ssl.rest.enabled", "security.ssl.rest.authentication-enabled"
RATIO = "security.delegation.tokens.renewal.time-ratio"
# Flink masks the values of keys with these words (GlobalConfiguration.isSensitive), in its logs and on its pages.
_MASKED = (
    "password",
    "secret",
    "fs.azure.account.key",
    "apikey",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
)
_OUR_TAG = "kstream"
_CHECKPOINTS = "it is checkpoints, below which each generation has a folder of its own"
_RESUME = "a generation starts where the one before it was left; a person names another start once, when it is started"
_HA = (
    "without it an application has one attempt, and the supervisor starts the next from the newest checkpoint; "
    "two that restart a job would run it twice"
)
# Each with what to use instead. A key that ends with a dot stands for all below it.
_RESERVED = {
    "execution.target": "target is yarn-application; remove it",
    "execution.attached": "remove it: nobody waits in a JVM",
    "execution.shutdown-on-application-finish": "remove it: a JobManager without a job would count as running",
    "execution.submit-failed-job-on-application-error": "remove it: a job that never ran has ended",
    "execution.state-recovery.path": _RESUME,
    "execution.state-recovery.claim-mode": "a supervisor deletes what is superseded; the mode is NO_CLAIM",
    "execution.state-recovery.ignore-unclaimed-state": _RESUME,
    "execution.savepoint.path": _RESUME,
    "execution.savepoint-restore-mode": "a supervisor deletes what is superseded; the mode is NO_CLAIM",
    "execution.savepoint.ignore-unclaimed-state": _RESUME,
    "execution.checkpointing.dir": _CHECKPOINTS,
    "state.checkpoints.dir": _CHECKPOINTS,
    "state.backend.fs.checkpointdir": _CHECKPOINTS,
    "execution.checkpointing.savepoint-dir": "use savepoints.folder",
    "state.savepoints.dir": "use savepoints.folder",
    "savepoints.state.backend.fs.dir": "use savepoints.folder",
    "execution.checkpointing.externalized-checkpoint-retention": "checkpoints are retained: a restart needs them",
    "execution.checkpointing.create-subdir": "each generation has a folder of its own",
    "state.checkpoints.create-subdir": "each generation has a folder of its own",
    "high-availability": _HA,
    "high-availability.": _HA,
    "recovery.mode": _HA,
    "job.autoscaler.": "deploy.parallelism is the job's, and nothing but the supervisor restarts it",
    "kubernetes.": "it is for YARN",
    "jobmanager.archive.fs.dir": "use the cluster's own history server",
    "parallelism.default": "use deploy.parallelism",
    "taskmanager.numberOfTaskSlots": "use deploy.slots",
    "jobmanager.memory.process.size": "use deploy.jobmanager_memory",
    "taskmanager.memory.process.size": "use deploy.taskmanager_memory",
    **{f"jobmanager.heap.{unit}": "use deploy.jobmanager_memory" for unit in ("size", "mb")},
    **{f"taskmanager.heap.{unit}": "use deploy.taskmanager_memory" for unit in ("size", "mb")},
    "rest.bind-port": "use deploy.rest_ports",
    "rest.port": "use deploy.rest_ports",
    "web.port": "use deploy.rest_ports",
    "jobmanager.web.port": "use deploy.rest_ports",
    "pipeline.jars": "use deploy.jars",
    "pipeline.classpaths": "use deploy.jars",
    "yarn.application.name": "use app_name",
    "yarn.application.id": "a stream is submitted, and not attached to",
    "yarn.application.type": "its type is Apache Flink",
    QUEUE: "use deploy.queue",
    "yarn.ship-files": "use deploy.files",
    "yarn.ship-directories": "use deploy.files",
    "yarn.ship-archives": "use deploy.files",
    "yarn.provided.lib.dirs": "use deploy.lib_dirs",
    "yarn.application-attempts": "the supervisor owns restarts, and an application has one attempt",
    "yarn.application-attempt-failures-validity-interval": "an application has one attempt (FLINK-38112)",
    "yarn.container-start-command-template": "the supervisor needs it for jobs of a proxy user",
    "yarn.security.kerberos.localized-keytab-path": "use credentials.keytab",
    "yarn.security.kerberos.ship-local-keytab": "use credentials.keytab",
    "security.kerberos.login.keytab": "use credentials.keytab",
    "security.kerberos.login.principal": "use credentials.principal",
    "security.keytab": "use credentials.keytab",
    "security.principal": "use credentials.principal",
    "security.kerberos.login.use-ticket-cache": "use credentials.mode",
    "security.kerberos.fetch.delegation-token": "a job needs tokens",
    "security.delegation.tokens.enabled": "a job needs tokens",
    "security.delegation.token.provider.hadoopfs.enabled": "no job on a kerberized cluster lives without HDFS's tokens",
    "security.kerberos.token.provider.hadoopfs.enabled": "no job on a kerberized cluster lives without HDFS's tokens",
    "security.delegation.token.provider.hadoopfs.renewer": "it is the ResourceManager: without it, no new TaskManager "
    "can start after one renew interval",
    "security.kerberos.token.provider.hadoopfs.renewer": "it is the ResourceManager: without it, no new TaskManager "
    "can start after one renew interval",
    "security.delegation.token.provider.kstream.": "it belongs to the supervisor",
    "$internal.": "Flink's own",
    "flink.hadoop.hadoop.security.authentication": "kstream is for clusters with Kerberos",
    **dict.fromkeys(
        ("flink.hadoop.fs.defaultFS", "flink.hadoop.fs.default.name"),
        "it is the connection's default_fs, on which the checkpoints are watched",
    ),
    "fs.defaultFS": "it is the connection's default_fs, on which the checkpoints are watched",
    "fs.default-scheme": "it is the connection's default_fs, on which the checkpoints are watched",
    # Where a setting has both of its names, Flink believes the newer one, which may be a default of ours.
    "state.checkpoints.num-retained": f"use its newer name, {RETAINED}",
    "security.kerberos.tokens.renewal.retry.backoff": f"use its newer name, {BACKOFF}",
    "security.kerberos.tokens.renewal.time-ratio": f"use its newer name, {RATIO}",
}
# What a connection has of these is the default of all its streams.
LIB_DIRS, PARALLELISM, SLOTS = "yarn.provided.lib.dirs", "parallelism.default", "taskmanager.numberOfTaskSlots"
JOB_MANAGER, TASK_MANAGER = "jobmanager.memory.process.size", "taskmanager.memory.process.size"
_DEFAULTS = {QUEUE, LIB_DIRS, PARALLELISM, SLOTS, JOB_MANAGER, TASK_MANAGER}
_RESERVED_IN_A_CONNECTION = {key: instead for key, instead in _RESERVED.items() if key not in _DEFAULTS}
_IN_MEMORY = (".*jobmanager.*", "checkpoints in the JobManager's memory end with it")
# Values in lower case that a setting may not have, each with the reason.
_WRONG_VALUES = {
    "execution.checkpointing.storage": _IN_MEMORY,
    "state.checkpoint-storage": _IN_MEMORY,
    "execution.runtime-mode": ("batch", "a job in batch mode makes no checkpoints"),
    "scheduler-mode": ("reactive", "Flink has that mode for standalone clusters alone, and not on YARN"),
    # Elsewhere nobody removes what a killed job leaves in it, and file: is the worker's own disk.
    "yarn.staging-directory": (
        r"(?!((hdfs|viewfs)://[^/\s]*)?/).+",
        "allowed is a path on the connection's default_fs",
    ),
}
# CheckpointCoordinatorConfiguration.MINIMAL_CHECKPOINT_TIME.
_SHORTEST_INTERVAL = timedelta(milliseconds=10)
_DURATION = re.compile(r"\s*(?P<number>\d+)\s*(?P<unit>[a-zµ]*)\s*")
# "Never" is written as Long.MAX_VALUE, or anything below: with this one, sums and dates can still be computed.
LONGEST = timedelta(days=3650)
_DIGITS = 20
# TimeUtils of Flink. Without a unit it is milliseconds.
_UNITS = {
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("min", "m", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), timedelta(milliseconds=1)),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), timedelta(microseconds=1)),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), timedelta()),
}
# Confs of files that the client reads or loads itself, and of the folder in which it writes its JAAS file (JaasModule).
_CONFS_OF_FILES = re.compile(
    r"plugin\.dir|(io|taskmanager)\.tmp\.dirs|.*\.(keystore|truststore)|python\..*", re.IGNORECASE
)

# Flink's scripts look for such keys with a regular expression, and evaluate what they find in the client's shell.
_OF_THE_CLIENT = re.compile(r"env[^a-z0-9].*", re.IGNORECASE)
_OF_CONTAINERS = {"env.java.opts.jobmanager", "env.java.opts.taskmanager"}
# What the client ships or reads from the worker's disk.
_OF_THE_WORKER = {
    "security.kerberos.krb5-conf.path": "use the connection's krb5_conf",
    "yarn.flink-dist-jar": "use deploy.lib_dirs",
    # HadoopUtils.getHadoopConfiguration; settings of such a file would be judged by nobody.
    **{f"fs.hdfs.{name}": "use flink.hadoop.* for each setting" for name in ("hadoopconf", "hdfsdefault", "hdfssite")},
    "yarn.properties-file.location": "a stream is submitted, and not attached to",
}


def flink_conf_errors(conf: Mapping[str, Value]) -> Iterator[str]:
    """Yield a sentence for each setting that a stream may not have; it shows the value only if that is not a secret."""
    yield from _errors(conf, _RESERVED | _OF_THE_WORKER)
    for key in conf:
        if _OF_THE_CLIENT.fullmatch(key.strip()) and key not in _OF_CONTAINERS:
            yield (
                f"sets {key}, which it may not: it is for the client on a worker; allowed are env.java.opts.jobmanager "
                "and env.java.opts.taskmanager"
            )
    yield from line_breaks(conf)


def flink_connection_errors(conf: Mapping[str, Value]) -> Iterator[str]:
    """Yield the same for a connection, whose settings are the defaults of all its streams."""
    yield from _errors(conf, _RESERVED_IN_A_CONNECTION)
    yield from line_breaks(conf)


def line_breaks(conf: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each text of several lines, and show none: Flink's scripts would read further settings."""
    for key, value in conf.items():
        if isinstance(value, str) and len(f"{key}{value}".splitlines()) > 1:
            yield f"has a line break in {key!r} or its value, which Flink's scripts take for another setting"


def is_on(conf: Mapping[str, str], key: str) -> bool:
    """Return whether a setting is true, as Flink reads it."""
    return conf.get(key, "").strip().lower() == "true"


def flink_duration(text: str) -> timedelta | None:
    """Read a duration as Flink writes and reads it, `LONGEST` for a longer one; None if it is none."""
    found = _DURATION.fullmatch(text.lower())
    unit = _UNITS.get(found["unit"]) if found else None
    if found is None or unit is None:
        return None
    number = found["number"].lstrip("0") or "0"
    return unit * min(int(number[:_DIGITS]), LONGEST // unit) if unit else unit


def is_masked(key: str) -> bool:
    """Return whether Flink masks the value of this key wherever it shows its configuration."""
    return any(word in key.lower() for word in _MASKED)


def files_in_flink_conf(conf: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files of this host that Flink's client reads or loads by its own settings."""
    yield from (value for key, value in conf.items() if _CONFS_OF_FILES.fullmatch(key))


def _errors(conf: Mapping[str, Value], reserved: Mapping[str, str]) -> Iterator[str]:
    for key, value in conf.items():
        if instead := _instead(key, reserved):
            yield f"sets {key}, which it may not: {instead}"
        if isinstance(value, SecretRef) and not is_masked(key):
            yield (
                f"takes {key} from a secret, which it may not: Flink shows that value on its pages to each user of the "
                f"cluster; it masks keys with one of {', '.join(_MASKED)}"
            )
    tags = str(conf.get(TAGS, "")).split(",")
    if any(tag.strip().lower().startswith(_OUR_TAG) for tag in tags):
        yield f"sets {TAGS}; no tag of a job's own may begin with {_OUR_TAG}, by which the supervisor finds its own"
    yield from _wrong_values({key: value for key, value in conf.items() if isinstance(value, str)})


def _wrong_values(conf: Mapping[str, str]) -> Iterator[str]:
    for key, (wrong, why) in _WRONG_VALUES.items():
        if re.fullmatch(wrong, conf.get(key, "").strip().lower()):
            yield f"sets {key}={conf[key]}, which it may not: {why}"
    kept, interval = conf.get(RETAINED), conf.get(INTERVAL)
    if kept is not None and not (kept.isdecimal() and int(kept) >= 2):
        yield f"sets {RETAINED}={kept}; allowed is 2 or more: the newest one may be incomplete when a job dies"
    if interval is not None and (flink_duration(interval) or timedelta()) < _SHORTEST_INTERVAL:
        yield f"sets {INTERVAL}={interval}; allowed is a duration of 10ms or more, such as 30s: a restart needs them"


def _instead(key: str, reserved: Mapping[str, str]) -> str:
    below = (words for name, words in reserved.items() if name.endswith(".") and key.startswith(name))
    return reserved.get(key) or next(below, "")


def _refused(conf: Mapping[str, Value], info: ValidationInfo) -> Mapping[str, Value]:
    if (info.context or {}).get(PERSISTED):
        return conf
    if message := "; ".join(flink_conf_errors(conf)):
        raise PydanticCustomError("conf", "{wrong}", {"wrong": message})
    return conf


def _refused_in_a_connection(conf: Mapping[str, Value], info: ValidationInfo) -> Mapping[str, Value]:
    if message := "; ".join(flink_connection_errors(conf)):
        raise PydanticCustomError("conf", "{wrong}", {"wrong": message})
    return conf


_NAMES = "|".join(re.escape(key) + (".*" if key.endswith(".") else "") for key in _RESERVED | _OF_THE_WORKER)
FlinkConf = Annotated[
    Mapping[ConfKey, ConfValue], FieldCheck(_refused, {"propertyNames": {"not": {"pattern": f"^({_NAMES})$"}}})
]
# For a connection: Airflow encrypts it, so it contains its secrets literally.
LiteralFlinkConf = Annotated[Mapping[ConfKey, Argument], FieldCheck(_refused_in_a_connection)]


def token_filesystems(conf: Mapping[str, str], default_fs: str) -> tuple[str, ...]:
    """Return the filesystems whose tokens the client gets, the cluster's own first."""
    return tuple(dict.fromkeys((default_fs.rstrip("/"), *named_filesystems(conf))))


def named_filesystems(conf: Mapping[str, str]) -> tuple[str, ...]:
    # Flink's lists are separated by semicolons, and by commas in YAML.
    listed = ";".join(conf.get(key, "") for key in _FILESYSTEMS).replace(",", ";").strip("[]").split(";")
    return tuple(dict.fromkeys(one for each in listed if (one := each.strip().rstrip("/")).startswith("hdfs://")))
