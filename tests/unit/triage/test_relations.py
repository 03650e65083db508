"""Compositions hold where their lines are in the relation that they name; remedies have the values of their line."""

from __future__ import annotations

import time

import pytest

from tests.simulated.logs import DRIVER, diagnosed, died, driver, failing, line

_MADE = line("10:00:00", "Created HDFS_DELEGATION_TOKEN token {} for alice on ha-hdfs:prod", writer="DFSClient")
_REFUSED = "SecretManager$InvalidToken: token (HDFS_DELEGATION_TOKEN token 17 for alice) can't be found in cache"
_DATED = (
    "SecretManager$InvalidToken: token (token for alice: HDFS_DELEGATION_TOKEN owner=alice, renewer=yarn, realUser=, "
    "issueDate={}, maxDate={}, sequenceNumber=17, masterKeyId=2) can't be found in cache"
)
# The refusal is on 2026-03-01 at 10:17 UTC; in milliseconds.
_REFUSED_AT, _HOUR = 1772360220000, 3600_000
_KEYTAB = line("09:59:00", "Login successful for user alice@EXAMPLE.COM using keytab file alice.keytab")


def cause(*records: str) -> str:
    return diagnosed({DRIVER: driver(*records, died("10:17:01"))}).cause


def refused(words: str = _REFUSED) -> str:
    return failing("10:17:00", "failed", words)


def test_a_token_that_is_younger_than_a_renew_interval_was_cancelled() -> None:
    assert cause(_MADE.format(17), refused()) == "hdfs-token-cancelled"
    assert cause(_MADE.format(16), refused()) == "hdfs-token-not-in-cache"
    assert cause(_MADE.format(17).replace("26/03/01", "26/02/28"), refused()) == "hdfs-token-not-in-cache"


def test_the_tokens_of_a_namenode_are_looked_through_once_for_all_containers() -> None:
    many = {f"container_1_1_01_{number:06}/stderr": driver(refused() * 16) for number in range(2, 100)}
    namenode = "".join(_MADE.format(number) for number in range(1000, 4000))
    began = time.process_time()
    verdict = diagnosed({"namenode.log": namenode, **many, DRIVER: driver(refused(), died("10:17:01"))})
    assert verdict.cause == "hdfs-token-not-in-cache"
    assert time.process_time() - began < 5


@pytest.mark.parametrize(("age", "named"), [(1, "hdfs-token-cancelled"), (25, "hdfs-token-not-in-cache")])
def test_the_date_of_issue_in_the_line_tells_the_age(age: int, named: str) -> None:
    issued = _REFUSED_AT - age * _HOUR
    assert cause(refused(_DATED.format(issued, issued + 168 * _HOUR))) == named


@pytest.mark.parametrize(
    ("limit", "named"),
    [("2026-03-01 10:16:00", "hdfs-token-aged-out"), ("2026-03-05 10:16:00", "hdfs-token-expired")],
)
def test_a_token_that_was_renewed_up_to_its_max_date_is_aged(limit: str, named: str) -> None:
    max_date = {"2026-03-01 10:16:00": _REFUSED_AT - 60_000}.get(limit, _REFUSED_AT + 96 * _HOUR)
    expired = (
        f"InvalidToken: token (token for alice: HDFS_DELEGATION_TOKEN owner=alice, maxDate={max_date}, "
        "sequenceNumber=17) is expired, current time: 2026-03-01 10:17:00,000+0000 expected renewal time: "
        "2026-03-01 10:16:00,000+0000"
    )
    assert cause(refused(expired)) == named


def test_a_login_from_the_keytab_before_the_refusal_is_not_advised_again() -> None:
    verdict = diagnosed({DRIVER: driver(_KEYTAB, refused(), died("10:17:01"))})
    assert verdict.cause == "token-although-keytab"
    assert verdict.signature is not None
    assert "keytab" not in verdict.signature.remedy
    assert cause(refused(), _KEYTAB.replace("09:59:00", "10:17:01")) == "hdfs-token-not-in-cache"


@pytest.mark.parametrize(
    ("application", "named"),
    [("application_1700000000001_0041", "staging-of-another"), ("application_1700000000001_0042", "staging-gone")],
)
def test_a_staging_file_of_another_application_differs_from_an_own_one(application: str, named: str) -> None:
    gone = f"java.io.FileNotFoundException: File does not exist: hdfs://prod/user/a/.sparkStaging/{application}/a.zip"
    assert cause(refused(gone)) == named


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (
            'AccessControlException: Permission denied: user=alice, access=WRITE, inode="/data/a":bob:hdfs:drwxr-xr-x',
            "`hdfs dfs -getfacl /data/a`",
        ),
        ("kinit: Credentials cache permissions incorrect (filename: /tmp/cc) while storing", "`ls -ln /tmp/cc`"),
        ('AccessControlException: Permission denied: user=alice, access=WRITE, inode="/a;b c"', "-getfacl PATH"),
    ],
)
def test_a_remedy_has_the_values_of_the_line_that_a_shell_takes_literally(words: str, command: str) -> None:
    verdict = diagnosed({DRIVER: driver(refused(words), died("10:17:01"))})
    assert verdict.signature is not None
    assert command in verdict.signature.remedy
