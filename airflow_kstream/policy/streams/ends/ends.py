"""The cause of a generation's end, from YARN's diagnostics and the error that its driver left.

The signs are the words of Hadoop 3.4.3 (ClientRMService, RMAppAttemptImpl, RMAppLifetimeMonitor, SchedulerUtils,
ContainersMonitorImpl, ContainerExitStatus, SecretManager$InvalidToken, SaslRpcClient), Spark 4 (ApplicationMaster), and
of what loads the state of a job that has to be told where it begins (Checkpoints.loadAndValidateCheckpoint). Words that
a job's own libraries use as well, such as "token has expired", are not signs: a delegation token's error names its
class or its kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_kstream.model.logs.log_line import without_variables
from airflow_kstream.model.streams.generation_end import EndKind, GenerationEnd
from airflow_kstream.model.streams.observation import Observation

# A container executor's words of any exit code, which name no error of the job (ContainerLaunch, since Hadoop 2.8).
_LAUNCH = re.compile(r"Exception from container-launch|Error file: prelaunch\.err")
# These say nothing of why: YARN's own words of them are as good as none.
_UNEXPLAINED = {EndKind.CODE, EndKind.UNKNOWN}

_TOKEN_KINDS = (
    r"HDFS_DELEGATION_TOKEN|WEBHDFS delegation|SWEBHDFS delegation|YARN_AM_RM_TOKEN|RM_DELEGATION_TOKEN"
    r"|HIVE_DELEGATION_TOKEN|HBASE_AUTH_TOKEN|kms-dt|KAFKA_DELEGATION_TOKEN"
)


@dataclass(frozen=True)
class _Sign:
    """A pattern that proves a kind wherever it stands: in YARN's diagnostics or in the driver's error."""

    kind: EndKind
    pattern: re.Pattern[str]


def _sign(kind: EndKind, *patterns: str) -> _Sign:
    return _Sign(kind, re.compile("|".join(patterns)))


# The first that is found counts: what YARN did to the application explains the error that the driver saw.
_SIGNS = (
    _sign(EndKind.LIFETIME, r"exceeded the lifetime period"),
    _sign(EndKind.PREEMPTED, r"exitCode:\s*-102\b", r"Container preempted by scheduler"),
    _sign(EndKind.NODE_LOST, r"exitCode:\s*-100\b", r"Container released on a \*lost\* node"),
    _sign(
        EndKind.MEMORY,
        r"exitCode:\s*-10[34]\b",
        r"beyond (?:the '\w+'|physical|virtual) memory limit",
        r"java\.lang\.OutOfMemoryError",
    ),
    _sign(
        EndKind.CREDENTIALS,
        r"SecretManager\$InvalidToken",
        r"Invalid AMRMToken",
        rf"(?:{_TOKEN_KINDS})[^\n]{{0,400}}?(?:can't be found in cache|is expired|has expired)",
        r"Client cannot authenticate via:\s?\[",
        r"GSS initiate failed",
        r"org\.ietf\.jgss\.GSSException",
    ),
    _sign(EndKind.STATE, r"Cannot map checkpoint/savepoint state for operator \w+ to the new program"),
    _sign(EndKind.AM_EXPIRED, r"ApplicationMaster for attempt \S+ timed out"),
    _sign(
        EndKind.INFRASTRUCTURE,
        # DISKS_FAILED: the NodeManager's.
        r"exitCode:\s*-101\b",
        r"org\.apache\.hadoop\.ipc\.StandbyException",
        r"SafeModeException",
        r"java\.net\.(?:ConnectException|NoRouteToHostException|UnknownHostException|SocketTimeoutException)",
        r"BlockMissingException",
        r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException)",
        r"Bootstrap broker [^\n]{0,200}? disconnected",
        r"NotEnoughReplicas",
        r"DSQuotaExceededException",
        r"NSQuotaExceededException",
    ),
    _sign(
        EndKind.CODE,
        r"User class threw exception",
        r"User application exited with status",
        r"Traceback \(most recent call last\)",
        r"StreamingQueryException",
    ),
)
# By the server that did not answer. The words are those of Kafka's clients 3 (NetworkClient, KafkaAdminClient, Fetcher)
# and of Hadoop's NetUtils.wrapException, whose address tells the default ports of a ResourceManager.
_SILENT = {
    "Kafka": re.compile(
        r"kafka\.common\.errors\.(?:TimeoutException|DisconnectException)"
        r"|Bootstrap broker [^\n]{0,200}? disconnected"
        r"|Connection to node -?\d+ [^\n]{0,200}?could not be established"
        r"|Timeout expired while fetching topic metadata"
    ),
    "ResourceManager": re.compile(r"Call From \S+ to \S+:80(?:30|32) failed on (?:connection|socket)"),
    "HDFS": re.compile(
        r"Call From \S+ to \S+ failed on (?:connection|socket)"
        r"|org\.apache\.hadoop\.ipc\.StandbyException|SafeModeException|BlockMissingException"
    ),
}
# Brokers that answer: it lacks a topic, or a right.
_ANSWERED = re.compile(r"UnknownTopicOrPartition|not present in metadata|Auth(?:orization|entication)Exception")
# AbstractDelegationTokenIdentifier.toString of Hadoop 3 begins with the kind; Token.toString names kind and service.
_TOKEN = re.compile(rf"Kind: (?P<kind>[\w.-]+), Service: (?P<service>[^\s,]+)|(?P<named>{_TOKEN_KINDS})")
_AMRM, _LOGIN = re.compile(r"Invalid AMRMToken"), re.compile(r"GSS initiate failed|org\.ietf\.jgss\.GSSException")
# Without an error's name these are not a failure that could be recognised: "User application exited with status 1" is
# all that YARN knows of every end of a Python job.
_NAMELESS = {EndKind.UNKNOWN, EndKind.CODE}
# ClientRMService. A job's own words come after it.
_KILLED = re.compile(r"Application application_\S+ was killed by user (?P<user>\S+)")
# An exception as Java and Python print it: its class, then its message.
_EXCEPTION = re.compile(r"(?<![\w$.])(?P<error>[\w$.]*(?:Error|Exception|InvalidToken)\b(?:\)?:[^\n]*)?)")
_STACK_FRAME = re.compile(r"^[ \t]*(?:at |File \"|\.\.\.).*$", re.MULTILINE)
# In characters. YARN's own words stand at the beginning, the innermost error at the end.
_LONGEST_TEXT = 20_000


def end_of(diagnostics: str, failure: str = "") -> GenerationEnd:
    """Classify an end. `diagnostics` are YARN's words, which quote the job's own error at most in part; `failure` is
    the error that the driver left in `failed-<n>`."""
    diagnostics, failure = _LAUNCH.sub("", _read(diagnostics)), _read(failure)
    if killed := _KILLED.search(diagnostics):
        return GenerationEnd(EndKind.KILLED, killed["user"])
    kind = _kind(diagnostics, failure)
    named = fingerprint_of(failure) or without_variables(failure) or fingerprint_of(diagnostics)
    fingerprint = named or ("" if kind in _NAMELESS else kind.value)
    silent = _silent(f"{diagnostics}\n{failure}") if kind is EndKind.INFRASTRUCTURE else ""
    credential = _credential(f"{diagnostics}\n{failure}") if kind is EndKind.CREDENTIALS else ""
    return GenerationEnd(kind, fingerprint=fingerprint, silent=silent, credential=credential)


def fingerprint_of(text: str) -> str:
    """Return the innermost error of a text without what differs between two runs; empty if it names none."""
    errors = [found["error"] for found in _EXCEPTION.finditer(_STACK_FRAME.sub("", text))]
    return without_variables(errors[-1]) if errors else ""


def _read(text: str) -> str:
    """Return what is read of a text: a job may print a book before it ends."""
    return text if len(text) <= 2 * _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}\n{text[-_LONGEST_TEXT:]}"


def _kind(diagnostics: str, failure: str) -> EndKind:
    signs = (sign.kind for sign in _SIGNS if sign.pattern.search(diagnostics) or sign.pattern.search(failure))
    return next(signs, EndKind.CODE if failure else EndKind.UNKNOWN)


def _silent(text: str) -> str:
    """Return the server that the text calls silent, empty if it names none or quotes an answer."""
    if _ANSWERED.search(text):
        return ""
    return next((server for server, pattern in _SILENT.items() if pattern.search(text)), "")


def _credential(text: str) -> str:
    """Return the credential that the text says has failed: a token's kind and service, or the log-in by Kerberos."""
    if _AMRM.search(text):
        return "YARN_AM_RM_TOKEN"
    found = list(_TOKEN.finditer(text))
    if token := next((one for one in found if one["service"]), None):
        return f"{token['kind']} of {token['service']}"
    if found:
        return found[0]["named"]
    return "Kerberos login" if _LOGIN.search(text) else ""


def log_is_asked(observation: Observation) -> bool:
    """Return whether the newest application has ended, and neither YARN nor its driver's last word names an error."""
    app = observation.current
    told = observation.driver.failure or observation.driver.log_error
    if app is None or app.alive or app.succeeded or not app.logs_url or told:
        return False
    diagnostics = _LAUNCH.sub("", app.diagnostics)
    return end_of(diagnostics).kind in _UNEXPLAINED and not fingerprint_of(diagnostics)
