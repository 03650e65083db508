"""Checks of jobs that Flink runs, by what their JobManagers show of their configuration.

A supervisor sets most of it for the jobs that it submits: these are above all about adopted ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, NotKnown, StreamFacts, known
from airflow_kstream.model.durations import format_duration, parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import NotChecked, Severity
from airflow_kstream.model.secrets import secrets_in
from airflow_kstream.model.streams.flink_conf import CLIENT_CERTIFICATE, SSL, is_masked, is_on
from airflow_kstream.policy.doctor.check import FindingDraft, draft_on

_BACKOFF = "security.delegation.tokens.renewal.retry.backoff"
_BACKOFF_BY_DEFAULT, _BACKOFF_ADVISED = timedelta(hours=1), timedelta(minutes=10)
# By its present name and its first one (FLINK-28608).
_RENEWERS = (
    "security.kerberos.token.provider.hadoopfs.renewer",
    "security.delegation.token.provider.hadoopfs.renewer",
)
_RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
_PORT = "rest.bind-port"
_VIEWERS = "yarn.view.acls"
_PROOFS = (SSL, CLIENT_CERTIFICATE)
_RECOVERY = ("high-availability.type", "high-availability")


def retry_backoff(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs with a keytab that wait too long after a failed round of tokens."""
    if not (stream.runs and stream.credentials.renews_itself):
        return
    told = stream.setting(_BACKOFF)
    wait = _duration(told) if told else _BACKOFF_BY_DEFAULT
    if wait > _BACKOFF_ADVISED:
        yield draft_on(
            stream,
            Severity.NOTE,
            f"after a failed round of new tokens the JobManager waits for {format_duration(wait)}",
            f"{_BACKOFF}: 10 min",
            _said(stream, _BACKOFF),
            "a KDC or NameNode that is away at its round leaves it few tries",
        )


def empty_renewer(facts: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs whose launch tokens nobody renews: from these, new TaskManagers get theirs (Utils.java of flink-yarn).

    Running processes are not concerned.
    """
    if not stream.runs or any(stream.setting(key) for key in _RENEWERS):
        return
    issued = stream.credentials.issued or stream.started
    since = issued + known(facts.hdfs.lifetimes).renew_interval if issued else None
    yield draft_on(
        stream,
        Severity.WARNING,
        "the ResourceManager does not renew the tokens of the launch, with which new TaskManagers start: a lost one "
        "can't be replaced after one renew interval, while YARN and Flink say RUNNING",
        f"{_RENEWERS[0]}: the ResourceManager's principal, at its next start",
        _said(stream, _RENEWERS[0]),
        "none of its TaskManagers can be replaced",
        since,
    )


def lost_checkpoints(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs whose checkpoints are deleted when they end: nothing but a savepoint resumes them."""
    if stream.runs and not known(stream.job.survives):
        yield draft_on(
            stream,
            Severity.WARNING,
            "its checkpoints may go when it ends: after that it starts from nothing, or from a savepoint",
            f"{_RETENTION}: RETAIN_ON_CANCELLATION, at its next start",
            f"the JobManager of {known(stream.running)}: externalization",
            "its position is lost with it",
        )


def unread_logs(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs whose logs are closed to the supervisor: the JobManager's tells why no TaskManager comes."""
    if stream.runs and not known(stream.job.readable):
        yield draft_on(
            stream,
            Severity.WARNING,
            "the connection's principal may not read its logs, which alone tell why a TaskManager can't start: nothing "
            "restarts it for a dead token",
            f"{_VIEWERS}: the principal's short name, at its next start; or yarn.admin.acl",
            f"its NodeManager refused; {_VIEWERS} is {stream.setting(_VIEWERS) or 'not set'} ({stream.job.conf_from})",
            "nobody learns why it has no TaskManagers",
        )


def open_port(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find JobManagers on a known port that ask nobody who they are: they stop, cancel and run jobs for anybody."""
    if not stream.runs or (port := stream.setting(_PORT) or "0") == "0":
        return
    if not all((stream.setting(key) or "").lower() == "true" for key in _PROOFS):
        yield draft_on(
            stream,
            Severity.WARNING,
            "everybody who reaches the JobManager's port can cancel its job, and run code as its user: Flink's REST "
            "knows no users",
            " and ".join(f"{key}: true" for key in _PROOFS) + ", or a firewall around the range",
            f"{_PORT} is {port} ({stream.job.conf_from})",
            "its JobManager obeys everybody",
        )


def stop_without_savepoint(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs that no stop with savepoint reaches: the jar in the JobManager speaks no TLS, and kstream has no
    certificate of a client."""
    conf = known(stream.job.conf) if stream.runs else {}
    fixed = conf.get(_PORT, "0") != "0"
    if not is_on(conf, SSL) or (fixed and not is_on(conf, CLIENT_CERTIFICATE)):
        return
    yield draft_on(
        stream,
        Severity.NOTE,
        "no stop makes a savepoint of it: the jar that obeys its marker speaks no TLS, and its port is not fixed, or "
        "wants a certificate that kstream hasn't",
        f"where restarts need one: deploy.rest_ports behind a firewall, without {CLIENT_CERTIFICATE}",
        _said(stream, CLIENT_CERTIFICATE if fixed else SSL),
        "each restart begins with its newest checkpoint",
    )


def own_recovery(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find jobs that Flink restarts beside a supervisor, with tokens of the submission (HighAvailabilityMode)."""
    if not stream.runs:
        return
    key, told = next(((key, value) for key in _RECOVERY if (value := stream.setting(key))), ("", "NONE"))
    if told.upper() != "NONE":
        yield draft_on(
            stream,
            Severity.WARNING,
            "Flink recovers the job itself, in a second attempt that begins with the tokens of the submission",
            f"{_RECOVERY[0]}: NONE, and yarn.application-attempts: 1, at its next start",
            f"{key} is {told} ({stream.job.conf_from})",
            "it recovers itself, beside its supervisor",
        )


def shown_secrets(_: ClusterFacts, stream: StreamFacts) -> Iterator[FindingDraft]:
    """Find secrets that the JobManager shows to each user whom YARN's proxy lets in (GlobalConfiguration)."""
    if not stream.runs:
        return
    shown = sorted(
        key for key, value in known(stream.job.conf).items() if secrets_in(key, value) and not is_masked(key)
    )
    if shown:
        yield draft_on(
            stream,
            Severity.WARNING,
            "the JobManager shows secrets of its configuration to each user of the cluster",
            "another key that Flink masks, such as one with `password` in it, and another secret",
            f"{', '.join(shown)} ({stream.job.conf_from})",
            "everybody on the cluster reads its secrets",
        )


def _duration(told: str) -> timedelta:
    """Read a duration as Flink writes it: `1 h`, `10 min`. Raises NotKnown: when it is none."""
    try:
        return parse_duration(told.replace(" ", "").replace("min", "m"))
    except InvalidInput:
        raise NotKnown(NotChecked(_BACKOFF, f"{told!r} is not a duration")) from None


def _said(stream: StreamFacts, key: str) -> str:
    told = stream.setting(key)
    return f"{key} is {told} ({stream.job.conf_from})" if told else f"{stream.job.conf_from} sets no {key}"
