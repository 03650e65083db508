"""Each check on a cluster where it finds nothing, on one where it finds something, and on one that doesn't answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.cluster_facts import ClusterFacts, ServerClock, SparkClient, StreamFacts
from airflow_kstream.model.finding import DoctorReport, NotChecked, Severity
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.policy.doctor.checks import CHECKS, examine
from tests.simulated.doctor_facts import (
    IN_ORDER,
    KEYTAB_STREAM,
    NOW,
    REFUSED,
    TICKET_STREAM,
    driver,
    with_conf,
    with_stream,
)
from tests.simulated.values import changed
from tests.unit.doctor.check_cases import CASES, Case

# A KDC that answers nothing is found by its check alone: it decides nothing else.
_OTHERWISE = {"kdc"}
_ATTEMPTS = "spark.yarn.maxAppAttempts"


def by_name(case: Case) -> str:
    return case.check


def of(check: str, facts: ClusterFacts) -> DoctorReport:
    """Return the report of one check."""
    return examine(facts, [row for row in CHECKS if row.id == check])


def test_each_check_has_its_three_clusters() -> None:
    assert Counter(row.id for row in CHECKS) == Counter([*(case.check for case in CASES), *_OTHERWISE])


def test_a_cluster_in_order_passes_all_checks() -> None:
    report = examine(IN_ORDER)
    assert (report.findings, report.undecided) == ((), ())
    assert report.passed == tuple(row.id for row in CHECKS)
    assert not report.failed


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_a_check_finds_what_is_wrong_with_the_fix_and_the_proof(case: Case) -> None:
    (finding,) = of(case.check, case.broken).findings
    assert finding.severity is case.severity
    assert case.words in "; ".join([finding.words, *(concern.sentence for concern in finding.concerns)])
    assert finding.fix
    assert finding.proof
    assert finding.source


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_a_check_concludes_nothing_from_what_it_could_not_ask(case: Case) -> None:
    report = of(case.check, case.mute)
    assert (report.findings, report.passed) == ((), ())
    (undecided,) = report.undecided
    assert " could not be asked, because " in undecided.fact.sentence


_SWITCHES = {
    "rm-recovery": "resourcemanager yarn.resourcemanager.recovery.enabled",
    "rm-privileges": "resourcemanager yarn.resourcemanager.proxy-user-privileges.enabled",
    "yarn-acls": "resourcemanager yarn.acl.enable",
    "log-aggregation": "nodemanager yarn.log-aggregation-enable",
    "nm-recovery": "nodemanager yarn.nodemanager.recovery.enabled",
    "client-rm-addresses": "resourcemanager yarn.resourcemanager.ha.enabled",
}


@pytest.mark.parametrize("word", ["<redacted>", "yes", "ture", "{'a': [1]}", ""])
@pytest.mark.parametrize("check", _SWITCHES)
def test_a_word_that_is_neither_true_nor_false_is_not_known(check: str, word: str) -> None:
    """A proxy may hide values, and Hadoop takes a default of its code for a typing error."""
    server, key = _SWITCHES[check].split()
    report = of(check, with_conf(server, **{key.replace(".", "__"): word}))
    assert report.findings == ()
    (undecided,) = report.undecided
    assert undecided.fact.sentence.startswith(f"{key} could not be asked, because ")
    assert undecided.fact.sentence.endswith(f" says {word!r}, which is neither true nor false")


@pytest.mark.parametrize(
    ("stream", "severity", "words"),
    [
        (TICKET_STREAM, Severity.NOTE, "its supervisor restarts it before"),
        (
            changed(TICKET_STREAM, tokens_end=NOW),
            Severity.ERROR,
            "nobody restarted it in time: it fails from",
        ),
        (replace(TICKET_STREAM, held=True), Severity.WARNING, "nobody restarts it while it is held"),
        (
            changed(TICKET_STREAM, held=True, refreshed=True),
            Severity.WARNING,
            "`kstream streams start clicks` lifts",
        ),
        (
            changed(TICKET_STREAM, held=True, tokens_end=NOW),
            Severity.ERROR,
            "nobody restarts it while it is held",
        ),
    ],
)
def test_it_foretells_a_restart_only_where_somebody_restarts(
    stream: StreamFacts, severity: Severity, words: str
) -> None:
    [finding] = of("token-end", replace(IN_ORDER, streams=(stream,))).findings
    assert finding.severity is severity
    [concern] = finding.concerns
    assert words in concern.sentence


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (
            changed(IN_ORDER, resourcemanagers=("http://rm1",), namenodes=("http://nn1",)),
            "http://rm1, http://nn1",
        ),
        (with_conf("nodemanager", yarn__http__policy="HTTP_ONLY"), "the NodeManagers"),
        (
            changed(with_conf("nodemanager", yarn__http__policy=None), namenodes=("http://nn1",)),
            "http://nn1",
        ),
        (
            changed(with_conf("nodemanager", yarn__http__policy="http_only"), resourcemanagers=("http://rm1",)),
            "http://rm1, the NodeManagers",
        ),
    ],
)
def test_servers_without_tls_are_named_in_one_finding_which_is_no_failure(facts: ClusterFacts, named: str) -> None:
    report = of("plain-http", facts)
    [finding] = report.findings
    assert finding.words.startswith(f"{named} are believed as the network delivers them")
    assert (report.failed, report.undecided) == (False, ())


def test_a_refusal_names_the_right_that_is_missing() -> None:
    (undecided,) = of("rm-privileges", changed(IN_ORDER, resourcemanager=REFUSED)).undecided
    assert undecided.fact.sentence.endswith("it answered 403; it needs a place in its acl")


def test_a_stream_that_can_t_be_read_hides_no_other() -> None:
    broken = replace(TICKET_STREAM, name="broken", running=NotChecked("the claim of broken", "it is not JSON"))
    sick = replace(TICKET_STREAM, supervised=False)
    report = of("token-end", replace(IN_ORDER, streams=(broken, sick)))
    assert [finding.streams for finding in report.findings] == [("clicks",)]
    assert [undecided.streams for undecided in report.undecided] == [("broken",)]


def test_findings_of_one_root_are_one_with_the_concerns_of_all_streams() -> None:
    streams = [changed(TICKET_STREAM, name=name, conf={}) for name in ("a", "b", "c")]
    (finding,) = of("second-attempt", replace(IN_ORDER, streams=tuple(streams))).findings
    assert finding.streams == ("a", "b", "c")


def test_lost_logs_and_a_lost_second_attempt_of_one_root_are_one_finding() -> None:
    facts = replace(
        with_conf("resourcemanager", yarn__resourcemanager__proxy_user_privileges__enabled="false"),
        streams=with_stream(KEYTAB_STREAM, setting=(_ATTEMPTS, None)).streams,
    )
    assert [finding.id for finding in examine(facts).findings] == ["attempt-window:unlimited", "rm-privileges"]
    (finding,) = of("rm-privileges", facts).findings
    expected = "its second attempt will fail, and its logs are lost if it ends, from 2026-05-14 12:00 UTC on"
    assert [concern.sentence for concern in finding.concerns] == [expected]


def test_the_fix_of_missing_privileges_names_the_lines_that_the_namenodes_lack() -> None:
    facts = changed(
        with_conf("namenode", hadoop__proxyuser__yarn__hosts=None),
        resourcemanager=with_conf(
            "resourcemanager", yarn__resourcemanager__proxy_user_privileges__enabled="false"
        ).confs.resourcemanager,
    )
    (finding,) = of("rm-privileges", facts).findings
    assert "hadoop.proxyuser.yarn.hosts=*" in finding.fix
    assert "hadoop.proxyuser.yarn.groups=*" not in finding.fix


def test_clocks_that_are_all_off_are_this_host_s() -> None:
    off = tuple(ServerClock(f"http://s{number}", timedelta(minutes=-7, seconds=number)) for number in range(4))
    (finding,) = of("clock-skew", changed(IN_ORDER, clocks=off)).findings
    assert finding.id == "clock-skew:this host"
    two = (*off[:1], *IN_ORDER.kerberos.clocks)
    assert [one.id for one in of("clock-skew", changed(IN_ORDER, clocks=two)).findings] == ["clock-skew:http://s0"]


def test_the_clock_skew_of_krb5_conf_decides_what_is_refused() -> None:
    off = (ServerClock("http://nn1", timedelta(minutes=2)), IN_ORDER.kerberos.clocks[1])
    (warning,) = of("clock-skew", changed(IN_ORDER, clocks=off)).findings
    (error,) = of("clock-skew", changed(IN_ORDER, clocks=off, krb5={"clockskew": "60"})).findings
    assert (warning.severity, error.severity) == (Severity.WARNING, Severity.ERROR)


def test_a_supervised_stream_s_own_end_is_a_note_and_a_dead_one_s_an_error() -> None:
    (note,) = of("token-end", with_stream(TICKET_STREAM)).findings
    (error,) = of("token-end", with_stream(TICKET_STREAM, tokens_end=NOW - timedelta(hours=1))).findings
    assert (note.severity, error.severity) == (Severity.NOTE, Severity.ERROR)


def test_a_stream_whose_tokens_are_pushed_has_no_end() -> None:
    assert not of("token-end", with_stream(TICKET_STREAM, refreshed=True)).findings


@pytest.mark.parametrize(
    ("version", "has"),
    [("2.8.2", True), ("2.8.1", False), ("2.7.7", False), ("2.10.0", True), ("3.4.3", True), ("4.0.0", True)],
)
def test_a_fix_is_in_a_branch_from_its_first_release_on(version: str, has: bool) -> None:
    assert bool(of("hdfs-9276", with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion(version)))).findings) is not has


# As reference sources and release notes have it, also where a later branch came out before the fix.
HAVE = {
    "hdfs-10763": {"2.6.4": False, "2.6.5": True, "2.7.3": False, "2.7.7": True, "2.9.2": True, "2.10.2": True},
    "hdfs-11576": {"2.8.5": False, "2.9.0": False, "2.9.1": True, "2.10.0": True, "3.0.0": True},
    "hdfs-11817": {"2.8.1": False, "2.8.2": True, "2.9.0": True, "2.10.2": True, "3.1.4": True},
    "hdfs-17430": {"3.4.3": False, "3.5.0": True},
    "hdfs-17861": {"3.4.3": False, "3.5.0": True},
}


@pytest.mark.parametrize(
    ("check", "version", "has"),
    [(check, version, has) for check, rows in HAVE.items() for version, has in rows.items()],
)
def test_a_namenode_has_a_fix_by_its_branch(check: str, version: str, has: bool) -> None:
    assert bool(of(check, changed(IN_ORDER, namenode_version=HadoopVersion(version))).passed) is has


@pytest.mark.parametrize(
    ("version", "has"), [("2.7.7", False), ("2.8.0", True), ("2.9.2", True), ("2.10.2", True), ("3.3.6", True)]
)
def test_a_client_gives_its_lease_up_by_its_branch(version: str, has: bool) -> None:
    assert bool(of("hdfs-10549", with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion(version)))).passed) is has


@pytest.mark.parametrize(
    ("version", "found"), [("2.9.2", True), ("2.10.0", True), ("3.0.3", True), ("3.1.3", True), ("3.2.1", True)]
)
def test_the_constant_lease_limit_is_known_by_version(version: str, found: bool) -> None:
    facts = with_conf("namenode", dfs__namenode__lease_hard_limit_sec=None)
    assert bool(of("lease-limit", changed(facts, namenode_version=HadoopVersion(version))).findings) is found


def test_a_distribution_may_carry_a_fix_below_its_first_release() -> None:
    above = of("hdfs-9276", with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion("3.1.1.7.1.7.0-551"))))
    below = of("hdfs-9276", with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion("2.6.0-cdh5.16.2"))))
    assert above.passed == ("hdfs-9276",)
    assert below.findings == ()
    assert "may carry the fix" in below.undecided[0].fact.sentence


def test_the_workaround_of_hdfs_9276_counts() -> None:
    facts = with_stream(
        KEYTAB_STREAM,
        driver=driver(HadoopVersion("2.7.7")),
        setting=("spark.hadoop.fs.hdfs.impl.disable.cache", "true"),
    )
    assert of("hdfs-9276", facts).passed


def test_a_lone_namenode_has_no_copies_of_a_token() -> None:
    facts = replace(
        with_conf("namenode", dfs__ha__namenodes__kstream=None),
        streams=(changed(KEYTAB_STREAM, driver=driver(HadoopVersion("2.7.7"))),),
    )
    assert of("hdfs-9276", facts).passed


def test_a_stream_that_does_not_run_concerns_nobody() -> None:
    facts = with_stream(TICKET_STREAM, running="", driver=driver(HadoopVersion("2.6.0")), conf={})
    assert not [finding for finding in examine(facts).findings if finding.concerns]


def test_a_namenode_that_refuses_does_not_hide_what_the_resourcemanager_said() -> None:
    facts = with_conf("resourcemanager", yarn__resourcemanager__proxy_user_privileges__enabled="false")
    (finding,) = of("rm-privileges", changed(facts, namenode=REFUSED, streams=REFUSED)).findings
    assert "hadoop.proxyuser.<user>.hosts=*" in finding.fix
    assert finding.concerns == ()


@pytest.mark.parametrize("check", ["yarn-3103", "hdfs-10549"])
def test_an_old_client_of_this_host_is_found_before_it_submits_anything(check: str) -> None:
    assert isinstance(IN_ORDER.client, SparkClient)
    old = replace(IN_ORDER.client, hadoop=HadoopVersion("2.6.0"))
    (finding,) = of(check, replace(IN_ORDER, client=old, streams=())).findings
    assert (finding.id, finding.concerns) == (f"{check}:this host's client", ())
    assert of(check, replace(IN_ORDER, client=REFUSED)).passed, "a host without a client submits nothing"


def test_a_host_without_a_client_is_no_matter_where_there_is_one_resourcemanager() -> None:
    assert of("client-rm-addresses", replace(IN_ORDER, client=REFUSED)).passed


def test_a_cluster_that_answers_nothing_is_a_failure() -> None:
    missing = {
        field.name: REFUSED
        for value in (IN_ORDER, IN_ORDER.confs, IN_ORDER.hdfs, IN_ORDER.kerberos, IN_ORDER.open_webs)
        for field in fields(value)
        if field.name not in {"now", "named", "confs", "hdfs", "kerberos", "clocks", "has_keytab", "open_webs"}
    }
    report = examine(changed(IN_ORDER, clocks=(), **missing))
    assert (report.findings, report.failed, report.blind) == ((), True, True)
    # Without a client on this host nothing is submitted from it, whoever is away.
    assert {one.check for one in report.undecided} == {row.id for row in CHECKS}
    assert not examine(changed(IN_ORDER, namenode=REFUSED)).failed
