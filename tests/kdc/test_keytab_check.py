"""The check of a cluster's keytabs where its servers, its files or its own keytab fail."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.kerberos.keytab import FindingKind
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck, check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace, explained, only_principal
from tests.kdc.logins import cluster, login
from tests.live.realms import shifted


def check(kdc: Kdc, place: KeytabPlace | None = None, *also: KeytabPlace) -> list[KeytabCheck]:
    """Check the keytabs of a cluster that has a KDC and nothing else."""
    return list(check_keytabs(cluster(login(kdc, "watcher")), place, also))


def place_of(kdc: Kdc, name: str) -> KeytabPlace:
    return KeytabPlace(kdc.principal(name), str(kdc.keytab(name)))


def kinds(check: KeytabCheck) -> list[FindingKind]:
    return [finding.kind for finding in check.findings]


def test_servers_that_are_away_hide_the_streams_and_not_the_keytab(kdc: Kdc) -> None:
    (own,) = check(kdc)
    assert kinds(own) == [FindingKind.STREAMS_NOT_KNOWN]
    assert (own.kvno, own.failed) == (1, False)


def test_the_watchers_ticket_tells_the_kvno_of_another_keytab_that_is_refused(kdc: Kdc) -> None:
    kdc.add("left-behind")
    kdc.change_key("left-behind")
    own, behind = check(kdc, None, place_of(kdc, "left-behind"), place_of(kdc, "watcher"))
    assert kinds(behind)[0] is FindingKind.BEHIND
    assert behind.to_json()["kdc_kvno"] == 2
    assert not own.failed


def test_one_keytab_that_fails_hides_no_other(kdc: Kdc, tmp_path: Path) -> None:
    gone = KeytabPlace(kdc.principal("gateway"), str(tmp_path / "gone.keytab"))
    torn = KeytabPlace(kdc.principal("hdfs"), str(tmp_path / "torn.keytab"))
    Path(torn.path).write_bytes(kdc.keytab("hdfs").read_bytes()[:-5])
    strange = KeytabPlace(kdc.principal("hdfs"), str(kdc.keytab("gateway")))
    checks = {checked.place: checked for checked in check(kdc, None, gone, torn, strange, place_of(kdc, "gateway"))}
    assert kinds(checks[gone])[0] is kinds(checks[torn])[0] is FindingKind.UNREADABLE
    assert "cut off" in checks[torn].findings[0].words
    assert kinds(checks[strange])[0] is FindingKind.NO_ENTRY
    assert not checks[place_of(kdc, "gateway")].failed


def test_a_keytab_that_this_user_may_not_read_is_unreadable(kdc: Kdc, tmp_path: Path) -> None:
    closed = KeytabPlace(kdc.principal("gateway"), str(tmp_path / "closed.keytab"))
    Path(closed.path).write_bytes(kdc.keytab("gateway").read_bytes())
    Path(closed.path).chmod(0)
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                # Root may read every file.
                os.setuid(65534)
                # That of the test run is closed to others.
                tempfile.tempdir = "/tmp"
            (only,) = check(kdc, closed)
            os._exit(0 if "Permission denied" in only.findings[0].words else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_reason_of_a_refused_login_is_one_sentence_with_its_remedy(kdc: Kdc) -> None:
    kdc.add("refused")
    refusal, refused = CredentialError("no", tried="log in"), login(kdc, "refused")
    assert explained(refusal, refused).message == "no"
    kdc.administer(["modprinc -allow_tix refused"])
    told = explained(refusal, refused)
    assert "refused@KSTREAM.TEST is locked or disabled (Client's credentials have been revoked): kadmin" in told.message
    assert not told.retryable


def test_a_login_that_a_wrong_clock_spoils_is_worth_another_try(kdc: Kdc, tmp_path: Path) -> None:
    """A stream that was just stopped would stay down for a clock that NTP mends in a minute."""
    with shifted(kdc, 930, tmp_path):
        told = explained(CredentialError("its ticket expired", tried="log in"), login(kdc, "watcher"))
    assert "the KDC's clock is 15m 30s ahead of this host's" in told.message
    assert told.retryable


def test_the_principal_of_a_keytab_may_be_left_out_when_the_keytab_has_only_one(kdc: Kdc) -> None:
    assert only_principal(str(kdc.keytab("gateway"))) == kdc.principal("gateway")
    with pytest.raises(InvalidInput, match=r"has keys of .*nn/localhost@.*; choose one with --principal"):
        only_principal(str(kdc.folders.service_keytab))
