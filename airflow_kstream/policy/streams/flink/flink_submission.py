"""The configuration of one generation of a Flink stream, each line with its reason, and its client's few words.

Nothing but the job itself goes through the client's command line. Behind an option that the client does not know, it
would take `-D` for an argument of the job, and log in with whatever ticket lies there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from airflow_kstream.model.clusters.cluster import shown_variables
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.contract import fence_name
from airflow_kstream.model.streams.deploy import SavepointFormat
from airflow_kstream.model.streams.flink_conf import (
    BACKOFF,
    CLIENT_CERTIFICATE,
    FILESYSTEMS,
    INTERVAL,
    JOB_MANAGER,
    LIB_DIRS,
    PARALLELISM,
    QUEUE,
    RETAINED,
    SLOTS,
    SSL,
    TAGS,
    TASK_MANAGER,
    flink_conf_errors,
    flink_connection_errors,
    is_masked,
    is_on,
    line_breaks,
    token_filesystems,
)
from airflow_kstream.model.streams.flink_contract import jar_settings
from airflow_kstream.model.streams.flink_job import flink_job_id
from airflow_kstream.model.streams.installations import FlinkInstallation
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials, ProxyUserCredentials
from airflow_kstream.model.streams.submission import (
    Argument,
    Origin,
    Setting,
    Submission,
    SubmissionOrder,
    from_kstream,
    from_spec,
    layered,
)
from airflow_kstream.policy.streams.flink.resume import ways_out
from airflow_kstream.policy.streams.horizon.rotation import identity_of

_FILESYSTEM = re.compile(r"hdfs://[^/\s;,]+(?=/)")
ENVIRONMENTS = ("containerized.master.env.", "containerized.taskmanager.env.")
_RENEWER = "security.kerberos.token.provider.hadoopfs.renewer"
# With the reason for each. A declaration, or the connection, may have another value.
_DEFAULTS = {
    BACKOFF: ("10 min", "by default a failed round of new tokens is repeated after an hour"),
    RETAINED: ("3", "the newest checkpoint may be incomplete when a job dies"),
}
_FIXED = {
    "execution.target": ("yarn-application", "each stream is an application of its own"),
    "yarn.application-attempts": ("1", "the supervisor owns restarts"),
    "execution.checkpointing.externalized-checkpoint-retention": (
        "RETAIN_ON_CANCELLATION",
        "a job that is killed leaves its checkpoints to its successor",
    ),
}
# Flink's own line, and a word that turns on in the JobManager what the client must not have (FLINK-31109).
_COMMAND = "%java% %jvmmem% %jvmopts% %logging% %class% %args% -Dsecurity.delegation.tokens.enabled=true %redirects%"


def flink_submission(order: SubmissionOrder, client: FlinkInstallation) -> Submission:
    """Return this generation's submission.

    Raises InvalidInput: when the declaration or the connection sets what it may not, which reading both refuses, or
    when a secret would go into a variable whose name Flink doesn't mask.
    """
    spec = flink_spec(order)
    _refuse("conf", flink_conf_errors(spec.conf))
    _refuse(f"flink_conf of connection {order.cluster.name}", flink_connection_errors(order.cluster.flink_conf))
    _refuse("deploy.environment", _shown_secrets(spec))
    _refuse("deploy", _several_files(spec))
    settings = _settings(order, spec, client)
    _refuse("the configuration", line_breaks({key: setting.value for key, setting in settings.items()}))
    return Submission(
        client.binary,
        tuple(_arguments(spec, client)),
        {key: setting.value for key, setting in settings.items() if setting.hidden(key)},
        client.obstacle,
        notes=tuple(_notes(order, client)),
        settings={key: setting for key, setting in settings.items() if not setting.hidden(key)},
        launched_as=_launched_as(order, spec),
    )


def flink_spec(order: SubmissionOrder) -> FlinkStreamSpec:
    return cast(FlinkStreamSpec, order.spec)


def checkpoints_folder(spec: FlinkStreamSpec, job: str = "") -> str:
    """Return the plain path below which a job's checkpoints lie: that of all generations without a job."""
    folder = plain_path(spec.checkpoints[0])
    return f"{folder}/{job}" if job else folder


def savepoints_folder(spec: FlinkStreamSpec, job: str = "") -> str:
    """Return the plain path below which a job's savepoints lie: that of all generations without a job."""
    folder = plain_path(spec.savepoints.folder) if spec.savepoints.folder else f"{checkpoints_folder(spec)}/savepoints"
    return f"{folder}/{job}" if job else folder


def on_hdfs(paths: Iterable[str], default_fs: str) -> tuple[str, ...]:
    """Return the paths with their filesystem: to Flink, one without any is a path of the host."""
    return tuple(default_fs.rstrip("/") + path if path.startswith("/") else path for path in paths)


def _refuse(where: str, errors: Iterable[str]) -> None:
    if message := "; ".join(errors):
        raise InvalidInput(f"{where} {message}")


def _shown_secrets(spec: FlinkStreamSpec) -> Iterator[str]:
    for name, value in spec.deploy.environment.items():
        if isinstance(value, SecretRef) and not is_masked(name):
            yield (
                f"takes {name} from a secret, which it may not: Flink shows its value to each user of the cluster; it "
                "masks variables with PASSWORD, SECRET or TOKEN in their names"
            )


def _arguments(spec: FlinkStreamSpec, client: FlinkInstallation) -> Iterator[Argument]:
    # The word changed with Flink 2.
    verb = "run" if client.version[:1] == (2,) else "run-application"
    yield Argument((verb,), from_kstream("the job's own main runs in its JobManager"))
    if spec.deploy.main_class:
        yield Argument(("-c", spec.deploy.main_class), from_spec("deploy.main_class"))
    yield Argument((spec.application, *spec.arguments), from_spec("application and arguments"))


def _stop_notes(spec: FlinkStreamSpec, conf: Mapping[str, str]) -> Iterator[str]:
    """Yield what the stop of this job lacks."""
    if is_on(conf, SSL):
        certificate = f", and kstream has no certificate for its port ({CLIENT_CERTIFICATE})"
        port = certificate if is_on(conf, CLIENT_CERTIFICATE) else "; only its port makes one, with deploy.rest_ports"
        yield (
            f"{SSL} is on: the jar that stops the job at its marker speaks no TLS and makes no savepoint{port}; "
            "without one, a restart begins with the newest checkpoint"
        )
    if spec.savepoints.format is not SavepointFormat.NATIVE:
        yield (
            f"savepoints.format is {spec.savepoints.format}, which holds for a stop on the port of deploy.rest_ports: "
            "the jar that stops the job at its marker makes native savepoints"
        )


def _begins(order: SubmissionOrder) -> str:
    """Say with which state a generation begins; one without a number may be the first or a later one."""
    follows = "it begins with what the generation before it left"
    if order.generation > 1:
        return follows
    first = f"it waits for a person's word, unless one was said: {ways_out(order.spec.name)}"
    return first if order.generation else f"{follows}; if it is the stream's first, {first}"


def _notes(order: SubmissionOrder, client: FlinkInstallation) -> Iterator[str]:
    spec, conf = flink_spec(order), {**order.cluster.flink_conf, **order.spec.plain_conf}
    if order.resume is None:
        yield _begins(order)
    if INTERVAL not in conf:
        yield f"{INTERVAL} is not set: unless the job sets one itself, it makes no checkpoints, and can't be restarted"
    yield from _stop_notes(spec, conf)
    known = token_filesystems(conf, order.cluster.default_fs)
    for other in dict.fromkeys(match[0] for word in spec.arguments if (match := _FILESYSTEM.search(word))):
        if other not in known:
            yield (
                f"arguments name {other}, and the job gets no token of it: if it reads or writes there, name it in "
                f"{FILESYSTEMS}"
            )
    yield (
        f"of {client.home}/conf only env.java.opts.* count: the settings below are the whole configuration, in a "
        "private FLINK_CONF_DIR"
    )
    for variable in shown_variables(order.cluster.client.environment):
        yield f"the client's environment has {variable}: connection {order.cluster.name}"


def _launched_as(order: SubmissionOrder, spec: FlinkStreamSpec) -> Identity | None:
    """Return for whom tokens are made: Flink's client gets none for a proxied user (HadoopModule)."""
    return identity_of(spec, order.cluster) if isinstance(spec.credentials, ProxyUserCredentials) else None


def _settings(order: SubmissionOrder, spec: FlinkStreamSpec, client: FlinkInstallation) -> dict[str, Setting]:
    """Return the settings. Later sources win: defaults, the connection, the declaration; then the protocol's own."""
    cluster = order.cluster
    settings = {key: Setting(value, from_kstream(why)) for key, (value, why) in _DEFAULTS.items()}
    settings |= layered(
        (Origin(f"{client.home}/conf", "Java needs it"), client.java),
        (Origin(f"connection {cluster.name}"), cluster.flink_conf),
        (from_spec(), spec.conf),
    )
    settings |= dict(_deployed(spec, cluster.default_fs))
    return settings | _protocol(order, spec, client, settings.get(TAGS))


def _deployed(spec: FlinkStreamSpec, default_fs: str) -> Iterator[tuple[str, Setting]]:
    deploy = spec.deploy
    named = {
        QUEUE: (deploy.queue, "queue"),
        PARALLELISM: (deploy.parallelism, "parallelism"),
        SLOTS: (deploy.slots, "slots"),
        JOB_MANAGER: (deploy.jobmanager_memory, "jobmanager_memory"),
        TASK_MANAGER: (deploy.taskmanager_memory, "taskmanager_memory"),
        LIB_DIRS: (";".join(on_hdfs(deploy.lib_dirs, default_fs)), "lib_dirs"),
        "rest.bind-port": (deploy.rest_ports, "rest_ports"),
    }
    for key, (value, field) in named.items():
        if value:
            yield key, Setting(str(value), from_spec(f"deploy.{field}"))
    for name, variable in deploy.environment.items():
        for prefix in ENVIRONMENTS:
            yield prefix + name, Setting(variable, from_spec("deploy.environment"))


def _protocol(
    order: SubmissionOrder, spec: FlinkStreamSpec, client: FlinkInstallation, user_tags: Setting | None
) -> dict[str, Setting]:
    tags = [*order.stream.tags(order.generation), *([str(user_tags.value)] if user_tags and user_tags.value else [])]
    default_fs, name = order.cluster.default_fs.rstrip("/"), "app_name" if spec.app_name else "name"
    told = {
        TAGS: (",".join(tags), "the application is found by its tag, not by a log line"),
        "$internal.pipeline.job-id": (
            flink_job_id(order.stream, order.generation, order.nonce),
            "the generation's own: its checkpoints' folder is known before it runs, and no other generation's",
        ),
        "execution.checkpointing.dir": (
            default_fs + checkpoints_folder(spec),
            "its checkpoints, with the filesystem",
        ),
        "execution.checkpointing.savepoint-dir": (
            default_fs + savepoints_folder(spec),
            "savepoints of planned stops, each generation's in a folder of its own",
        ),
        "yarn.ship-files": (
            ";".join(_shipped(order, spec, client)),
            "the files; the fence, used in place: once it is deleted, no process of this generation can start; and the "
            "jar that lets the JobManager stop at a marker and equips new TaskManagers",
        ),
        _RENEWER: (client.renewer, "else new TaskManagers can't start after one renew interval"),
        **_FIXED,
        **_credentials(order, spec),
        **_resume(order, default_fs),
    }
    terms = jar_settings(str(order.stream), order.generation, order.folder_uri, takes_tokens=spec.credentials.refresh)
    contract = layered((from_kstream("the contract with the jar in the JobManager"), terms))
    named = {"yarn.application.name": Setting(spec.app_name or spec.name, from_spec(name))}
    return {key: Setting(value, from_kstream(why)) for key, (value, why) in told.items()} | contract | named


def _several_files(spec: FlinkStreamSpec) -> Iterator[str]:
    """Yield each name that Flink, which joins them with semicolons, would take for more files than were judged."""
    for path in spec.deploy.shipped:
        if ";" in path:
            yield f"names {path!r}; allowed is one file, without a semicolon"


def _shipped(order: SubmissionOrder, spec: FlinkStreamSpec, client: FlinkInstallation) -> Iterator[str]:
    yield from (*spec.deploy.files, *spec.deploy.jars)
    yield f"{order.folder_uri}/{fence_name(order.generation, order.nonce)}"
    if client.jar:
        yield client.jar


def _credentials(order: SubmissionOrder, spec: FlinkStreamSpec) -> Mapping[str, tuple[str, str]]:
    identity = identity_of(spec, order.cluster)
    if isinstance(spec.credentials, KeytabCredentials):
        why = "the job logs in itself, and its client as well"
        return {
            "security.kerberos.login.keytab": (identity.keytab or "", why),
            "security.kerberos.login.principal": (identity.principal, why),
            "security.kerberos.login.use-ticket-cache": ("false", "nobody else's ticket"),
        }
    if identity.do_as:
        return {
            "security.delegation.tokens.enabled": ("false", "Flink's client refuses proxied users otherwise"),
            "yarn.container-start-command-template": (_COMMAND, "in the JobManager, the same is true"),
        }
    return {}


def _resume(order: SubmissionOrder, default_fs: str) -> Mapping[str, tuple[str, str]]:
    resume = order.resume
    if resume is None or resume.fresh:
        return {}
    made = f"where generation {resume.made_by} was left" if resume.made_by is not None else "where a person wants it"
    settings = {
        "execution.state-recovery.path": (default_fs + resume.path, made),
        "execution.state-recovery.claim-mode": ("NO_CLAIM", "what it begins with stays whole, as the way back"),
    }
    if resume.drops_unmapped:
        settings["execution.state-recovery.ignore-unclaimed-state"] = ("true", "a person's word")
    return settings
