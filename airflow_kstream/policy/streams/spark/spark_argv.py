"""The words of one spark-submit in cluster mode, each with its origin. This module knows nothing about generations.

`with_client_defaults` tells what becomes of the client's own spark-defaults.conf where secrets go to it in a properties
file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.model.streams.stream import (
    KeytabCredentials,
    ProxyUserCredentials,
    StreamCredentials,
    TicketCredentials,
)
from airflow_kstream.model.streams.submission import (
    Argument,
    Origin,
    Setting,
    SparkDefaults,
    Submission,
    from_kstream,
    from_spec,
)

# The first that reads its defaults beside a properties file, with --load-spark-defaults (SPARK-48392). To older ones
# the option is an error, and the file replaces the defaults (SparkSubmitArguments.mergeDefaultSparkProperties).
_READS_BOTH = (4, 0)

_ENVIRONMENTS = ("spark.yarn.appMasterEnv.", "spark.executorEnv.")
_REDACTION, _HADOOP = "spark.redaction.regex", "spark.hadoop."
_REDACTED_BY_SPARK = "(?i)secret|password|token|access[.]?key"
_FIRST_HADOOP_WITH_HDFS_9276 = (2, 8, 2)


@dataclass(frozen=True)
class SparkJob:
    """The facts that decide the words.

    `settings` are the confs, already layered. `origins` replace the origin of a flag whose value the declaration
    alone doesn't explain, such as "--files".
    """

    name: str
    application: str
    arguments: tuple[str, ...]
    credentials: StreamCredentials
    deploy: Deploy
    client: SparkDefaults
    settings: Mapping[str, Setting] = field(repr=False)
    origins: Mapping[str, Origin] = field(default_factory=dict)


def spark_argv(job: SparkJob) -> Submission:
    """Return the words; confs that hold secrets stay out of argv."""
    job = replace(job, settings={**job.settings, **redaction_settings(job.settings)})
    confs = (
        Argument(("--conf", f"{key}={setting.value}"), setting.origin)
        for key, setting in sorted(job.settings.items())
        if not setting.hidden(key)
    )
    secret = {key: setting.value for key, setting in job.settings.items() if setting.hidden(key)}
    named = job.origins.get("application", from_spec("application and arguments"))
    application = Argument((job.application, *job.arguments), named)
    return Submission(job.client.binary, (*_flags(job), *confs, application), secret)


def environment_settings(deploy: Deploy) -> dict[str, Setting]:
    """Return the confs that set `deploy.environment` in the driver and the executors."""
    return {
        prefix + name: Setting(value, from_spec("deploy.environment"))
        for name, value in deploy.environment.items()
        for prefix in _ENVIRONMENTS
    }


def client_settings(client: SparkDefaults, credentials: StreamCredentials) -> dict[str, Setting]:
    """Return the confs that work around known defects; declared confs take precedence."""
    return dict(_workarounds(client, credentials))


def token_settings(paths: Iterable[str], default_fs: str) -> dict[str, Setting]:
    """Return the conf that gets tokens for the filesystems of these paths, if it is needed."""
    roots = {"/".join(path.split("/", 3)[:3]) for path in paths if path.startswith("hdfs://")}
    filesystems = sorted(roots - {default_fs.rstrip("/"), "hdfs:"})
    if not filesystems:
        return {}
    why = "the checkpoints lie outside fs.defaultFS and need tokens of their own"
    return {"spark.kerberos.access.hadoopFileSystems": Setting(",".join(filesystems), from_kstream(why))}


def redaction_settings(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the conf that keeps hidden settings out of Spark's own logs and pages, if their names alone do not.

    Spark logs the environment of its executors, and redacts by name (SparkConf's spark.redaction.regex).
    """
    declared = settings.get(_REDACTION)
    pattern = declared.value if declared else _REDACTED_BY_SPARK
    if isinstance(pattern, SecretRef):
        return {}
    hidden = (key for key, setting in settings.items() if setting.hidden(key))
    names = {key.removeprefix(_ENVIRONMENTS[0]).removeprefix(_ENVIRONMENTS[1]) for key in hidden}
    unknown = sorted(name for name in names if declared or not re.search(_REDACTED_BY_SPARK, name))
    if not unknown:
        return {}
    why = from_kstream("these hold secrets, which their names don't tell Spark")
    return {_REDACTION: Setting("|".join([pattern, *map(_named, unknown)]), why)}


def _named(key: str) -> str:
    """Return the regex of a name; Spark shows a conf of Hadoop's once more, without its prefix."""
    of_hadoop = key.removeprefix(_HADOOP)
    return f"^(\\Q{_HADOOP}\\E)?\\Q{of_hadoop}\\E$" if of_hadoop != key else f"\\Q{key}\\E"


def _flags(job: SparkJob) -> Iterator[Argument]:
    deploy = job.deploy
    why = "the driver outlives the submitter"
    yield Argument(("--master", "yarn", "--deploy-mode", "cluster"), from_kstream(why))
    yield Argument(("--name", job.name), job.origins.get("--name", from_spec("name")))
    yield from _credential_flags(job.credentials)
    queue, source = (deploy.queue, "spec") if deploy.queue else (job.client.queue, job.client.source)
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
        ("--files", ",".join(deploy.files)),
        ("--py-files", ",".join(deploy.py_files)),
    ):
        if value:
            yield Argument((flag, str(value)), job.origins.get(flag, from_spec("deploy")))


def _credential_flags(credentials: StreamCredentials) -> Iterator[Argument]:
    match credentials:
        case KeytabCredentials(principal, keytab):
            why = "the driver logs in from its own copy and makes new tokens before the old ones end"
            yield Argument(("--principal", principal, "--keytab", keytab or ""), from_spec(f"credentials: {why}"))
        case ProxyUserCredentials(user):
            why = "the submitter gets this user's tokens, once"
            yield Argument(("--proxy-user", user), from_spec(f"credentials: {why}"))
        case TicketCredentials():
            return


def _workarounds(client: SparkDefaults, credentials: StreamCredentials) -> Iterator[tuple[str, Setting]]:
    if credentials.renews_itself:
        why = "after a failed renewal Spark would wait an hour of a token's last hours (SPARK-37787)"
        yield "spark.security.credentials.retryWait", Setting("10m", from_kstream(why))
    hadoop = client.installation.hadoop if client.installation else None
    if hadoop and hadoop.numbers and hadoop.numbers < _FIRST_HADOOP_WITH_HDFS_9276:
        why = f"Hadoop {hadoop} doesn't update the tokens of an HA nameservice (HDFS-9276)"
        yield "spark.hadoop.fs.hdfs.impl.disable.cache", Setting("true", from_kstream(why))


def with_client_defaults(plan: Submission, client: SparkInstallation | None) -> Submission:
    """Return the submission with what this client's defaults need if there are secrets, else unchanged.

    `client` is None before the client was asked: then nothing is an obstacle yet. The defaults are the host's, so they
    belong to no declaration and to no fingerprint of one.

    Raises Unavailable: when the client could not be asked now, and there are secrets.
    """
    if not plan.secret_conf:
        return plan
    if client is None:
        note = (
            f"the client's own spark-defaults.conf holds below the secrets; {plan.binary} tells which when it submits"
        )
        return replace(plan, notes=(*plan.notes, note))
    if client.trouble:
        raise Unavailable(client.trouble, tried=f"ask {plan.binary} which Spark it runs")
    if client.version >= _READS_BOTH:
        return plan
    if not client.version or not client.conf_dir:
        return replace(plan, obstacle=_untold(plan.binary))
    note = (
        f"below the secrets in the private properties file stand the confs of {client.defaults_file}, which Spark "
        f"{'.'.join(map(str, client.version))} does not read beside such a file"
    )
    return replace(plan, defaults_file=client.defaults_file, notes=(*plan.notes, note))


def _untold(binary: str) -> str:
    return (
        f"{binary} does not tell which Spark it runs and which spark-defaults.conf that reads, as Spark's own tells "
        "with --version where SPARK_PRINT_LAUNCH_COMMAND=1 is set; before Spark 4 the file with the secrets would "
        "replace these defaults. Set SPARK_HOME on this host to the folder with Spark's own bin/spark-submit, or put "
        "that bin first on PATH"
    )
