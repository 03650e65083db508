"""A claim chooses by its fingerprint among the copies of declarations, and brings nothing of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from tests.simulated.folders import keep_copy
from tests.simulated.life import SPEC
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import STREAM

WEEK = TokenLifetimes(timedelta(days=1), timedelta(days=7))
# What the job of the stream would rather have submitted, and whom it would alert.
ITS_OWN = replace(SPEC, application="/jobs/its_own.jar", notify=NotifyPolicy("its.own.Notifier"))


@pytest.fixture
def hdfs() -> SimHdfs:
    hdfs = SimHdfs(SimClock())
    with hdfs.as_user("billing"):
        hdfs.make_folder(STREAM.folder, "755")
    return hdfs


def claimed(hdfs: SimHdfs, spec: StreamSpec, *, names: StreamSpec) -> Claim:
    """Return what a watcher reads of a claim that its job wrote: this spec, and the fingerprint of another."""
    text = written_claim(ClaimDraft(1, "nonce", spec, WEEK, {}, ""), "somebody")
    with hdfs.as_user("billing"):
        hdfs.write(f"{STREAM.folder}/gen-000001", text.replace(fingerprint(spec), fingerprint(names)))
    claim = StreamFolder(session_of(hdfs, SimYarn(hdfs.clock)), STREAM).claim_of(1)
    assert isinstance(claim.spec, StreamSpec)
    return claim


def test_a_claim_chooses_among_the_copies_and_brings_nothing_of_its_own(hdfs: SimHdfs) -> None:
    keep_copy(hdfs, STREAM, SPEC, "billing")
    claim = claimed(hdfs, ITS_OWN, names=SPEC)
    assert (claim.spec, claim.file.copied) == (SPEC, True)


def test_without_a_copy_a_claim_names_nobody_to_alert(hdfs: SimHdfs) -> None:
    claim = claimed(hdfs, ITS_OWN, names=ITS_OWN)
    assert isinstance(claim.spec, StreamSpec)
    assert (claim.spec.application, claim.file.copied) == (ITS_OWN.application, False)
    assert claim.spec.notify == NotifyPolicy()
