"""The cause of an end, from the words of YARN, Hadoop and Spark as their logs and answers have them."""

from __future__ import annotations

import time

import pytest

from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.policy.streams.ends.ends import end_of, fingerprint_of
from tests.simulated.flink import UNMAPPED

_FAILED = "Application application_1_0001 failed 1 times due to "
_AM = f"{_FAILED}AM Container for appattempt_1_0001_000001 exited with  exitCode: "
_KILLED = "Application application_1_0001 was killed by user bob at 10.0.0.7"
_INVALID = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
ENDS = {
    f"{_AM}1443\nException from container-launch\n{UNMAPPED}": EndKind.STATE,
    f"org.apache.hadoop.ipc.RemoteException({_INVALID}): token (HDFS_DELEGATION_TOKEN token 4361 for hncscwc) can't be "
    "found in cache": EndKind.CREDENTIALS,
    f"{_INVALID}: Invalid AMRMToken from appattempt_1477044851292_468337_000002": EndKind.CREDENTIALS,
    "token (HDFS_DELEGATION_TOKEN token 7 for orders with renewer yarn) is expired, current time: 2026-01-01": (
        EndKind.CREDENTIALS
    ),
    "java.io.IOException: Client cannot authenticate via:[TOKEN, KERBEROS]": EndKind.CREDENTIALS,
    f"{_AM}-102\nFailing this attempt.Diagnostics: Container preempted by scheduler": EndKind.PREEMPTED,
    f"{_AM}-100\nFailing this attempt.Diagnostics: Container released on a *lost* node": EndKind.NODE_LOST,
    f"{_AM}-104\nFailing this attempt.Diagnostics: [2026-01-01]Container [pid=1,containerID=container_1_0001_01_000001]"
    " is running 123B beyond the 'PHYSICAL' memory limit. Current usage: 1.4 GB": EndKind.MEMORY,
    f"{_FAILED}ApplicationMaster for attempt appattempt_1_0001_000001 timed out. Failing the application.": (
        EndKind.AM_EXPIRED
    ),
    "Application is killed by ResourceManager as it has exceeded the lifetime period.": EndKind.LIFETIME,
    _KILLED: EndKind.KILLED,
    f"{_AM}-101\nFailing this attempt.": EndKind.INFRASTRUCTURE,
    "User class threw exception: java.net.ConnectException: Call From a/1.2.3.4 to nn:8020 failed": (
        EndKind.INFRASTRUCTURE
    ),
    "User application exited with status 1": EndKind.CODE,
    "User class threw exception: java.lang.IllegalStateException: 3": EndKind.CODE,
    "": EndKind.UNKNOWN,
    "something new": EndKind.UNKNOWN,
}


@pytest.mark.parametrize(("diagnostics", "kind"), ENDS.items())
def test_an_end_is_classified_by_the_words_of_its_servers(diagnostics: str, kind: EndKind) -> None:
    assert end_of(diagnostics).kind is kind


@pytest.mark.parametrize(
    "diagnostics",
    [
        "User class threw exception: com.acme.OAuthException: Token has expired",
        "User class threw exception: io.jsonwebtoken.ExpiredJwtException: JWT expired at 2026-01-01",
        "User class threw exception: com.acme.InvalidTokenFormat: line 3",
    ],
)
def test_a_token_of_the_jobs_own_is_no_dead_delegation_token(diagnostics: str) -> None:
    assert end_of(diagnostics).kind is EndKind.CODE


def test_a_kill_names_the_user_even_where_the_killer_quotes_an_error() -> None:
    end = end_of(f"{_KILLED} with diagnostic message: java.lang.OutOfMemoryError suspected")
    assert (end.kind, end.killed_by) == (EndKind.KILLED, "bob")


def test_a_jobs_own_words_about_a_kill_are_no_kill_by_yarn() -> None:
    assert end_of("User class threw exception: QueryException: query 7 was killed by user bob").kind is EndKind.CODE


def test_the_drivers_own_error_decides_where_yarn_knows_only_a_status() -> None:
    end = end_of("User application exited with status 1", f"{_INVALID}: token (x) can't be found in cache")
    assert end.kind is EndKind.CREDENTIALS
    assert end.fingerprint.startswith(_INVALID)


def test_the_innermost_error_is_the_fingerprint() -> None:
    text = "java.lang.RuntimeException: task failed\n\tat a.B.c(B.java:1)\nCaused by: com.acme.ParseException: record 7"
    assert fingerprint_of(text) == "com.acme.ParseException: record #"


def test_an_error_without_a_class_is_known_by_its_first_line() -> None:
    failure = "[STREAM_FAILED] Query [id = 11111111-2222-3333-4444-555555555555] terminated with: record 7\nmore"
    assert end_of("", failure).fingerprint == "[STREAM_FAILED] Query [id = #] terminated with: record #"


def test_an_end_of_unknown_cause_resembles_no_other() -> None:
    assert (end_of("").fingerprint, end_of(_KILLED).fingerprint) == ("", "")
    assert end_of(f"{_AM}-104").fingerprint == "memory"


@pytest.mark.parametrize("status", [1, 2, 137])
def test_a_bare_exit_status_resembles_no_other_until_the_driver_names_its_error(status: int) -> None:
    """YARN says the same of every Python job: of a dead token, of a Kafka that is away, of a column that is missing."""
    bare = f"User application exited with status {status}"
    assert (end_of(bare).kind, end_of(bare).fingerprint) == (EndKind.CODE, "")
    assert end_of(bare, "ValueError: no such column").fingerprint == "ValueError: no such column"
    assert end_of(f"{bare}\njava.lang.IllegalStateException: 3").fingerprint == "java.lang.IllegalStateException: #"


@pytest.mark.parametrize("length", [10**3, 10**6])
def test_long_diagnostics_take_no_time(length: int) -> None:
    """YARN quotes what the job printed: nothing of it may keep a triggerer's thread busy."""
    for text in ("a." * length, "A" * length, "Exception: " * length, "0" * length, "at \n" * length, "\n " * length):
        began = time.process_time()
        end_of(text, text)
        assert time.process_time() - began < 2


_TOKEN = "Kind: {}, Service: {}, Ident: (owner=orders)"
CREDENTIALS = {
    f"{_INVALID}: Invalid AMRMToken from appattempt_1_0001_000001": "YARN_AM_RM_TOKEN",
    f"{_INVALID}: token (HDFS_DELEGATION_TOKEN token 7 for orders) can't be found in cache": "HDFS_DELEGATION_TOKEN",
    f"{_INVALID}: token (kms-dt owner=orders) is expired": "kms-dt",
    f"{_INVALID}: x; {_TOKEN.format('HDFS_DELEGATION_TOKEN', 'ha-hdfs:ns1')}": "HDFS_DELEGATION_TOKEN of ha-hdfs:ns1",
    f"{_INVALID}: x; {_TOKEN.format('HIVE_DELEGATION_TOKEN', 'hms:9083')}": "HIVE_DELEGATION_TOKEN of hms:9083",
    "javax.security.sasl.SaslException: GSS initiate failed": "Kerberos login",
    "java.io.IOException: Client cannot authenticate via:[TOKEN, KERBEROS]": "",
    "java.lang.IllegalStateException: HDFS_DELEGATION_TOKEN": "",
}


@pytest.mark.parametrize(("error", "credential"), CREDENTIALS.items())
def test_a_dead_credential_is_known_by_its_kind_and_service(error: str, credential: str) -> None:
    assert end_of(f"User class threw exception: {error}").credential == credential
    assert end_of("User application exited with status 1", error).credential == credential


_RPC = "java.net.ConnectException: Call From node1/10.0.0.7 to {} failed on connection exception: Connection refused"
SILENT = {
    "org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching topic metadata": "Kafka",
    "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: x": "Kafka",
    "org.apache.kafka.common.errors.DisconnectException": "Kafka",
    "WARN NetworkClient: Bootstrap broker kafka1:9092 (id: -1 rack: null) disconnected": "Kafka",
    "org.apache.kafka.common.errors.TimeoutException: Topic orders not present in metadata after 60000 ms.": "",
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic": "",
    "TimeoutException; Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: refused": "",
    _RPC.format("nn1.example.com:8020"): "HDFS",
    _RPC.format("rm1.example.com:8030"): "ResourceManager",
    "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.ipc.StandbyException): Operation category READ": "HDFS",
    "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create /a. Name node is in safe mode.": "HDFS",
    "java.net.ConnectException: Connection refused": "",
    "java.lang.IllegalStateException: no such column": "",
    "java.lang.OutOfMemoryError: org.apache.kafka.common.errors.TimeoutException": "",
}


@pytest.mark.parametrize(("error", "server"), SILENT.items())
def test_a_server_is_silent_where_the_jobs_error_names_it(error: str, server: str) -> None:
    """What answers is not silent: a topic that is missing, a right that is."""
    assert end_of(f"User class threw exception: {error}").silent == server
    assert end_of("User application exited with status 1", error).silent == server


def test_a_jobs_own_words_about_a_kill_are_no_persons_word() -> None:
    own = "Application application_1_0001 was killed by user eve"
    assert end_of("User application exited with status 1", own).kind is not EndKind.KILLED
