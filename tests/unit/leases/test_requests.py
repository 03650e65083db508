"""Requests about open files as people write them, and the reports that they get."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.leases.lease import (
    Attribution,
    Decision,
    FileChange,
    FileCondition,
    HolderStatus,
    Judgement,
    Outcome,
    Recovery,
)
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import Block, FileHistory, FileState, OpenFile
from airflow_kstream.model.leases.requests import (
    AllowedPath,
    Backend,
    LimitsName,
    OpenFileCondition,
    RecoveryRequest,
    allowed_path,
    fields_with,
)
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.leases.executor import RecoveryRun
from airflow_kstream.supervise.leases.findings import FileFinding, Survey, condition_report, is_met, stuck_files
from airflow_kstream.supervise.leases.judging import Intent
from airflow_kstream.supervise.leases.recover import RecoveryReport
from airflow_kstream.views.leases import (
    bounded,
    failure,
    findings_table,
    hints,
    recoveries_table,
    summary,
)
from airflow_kstream.views.tables import lines

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GATE = HdfsHealth("nn1", safe_mode=False, dead=0, stale=0, version="3.4.3")
DENIED = "AccessControlException: Permission denied: user=watcher, access=WRITE"


def finding(
    path: str, condition: FileCondition = FileCondition.IDLE, unchanged_for: timedelta = timedelta(0)
) -> FileFinding:
    state = FileState(path, 1, "alice", NOW - timedelta(hours=1), True, 5, Block(1, 1, 5, False))
    history = FileHistory(OpenFile(path), state, NOW, NOW - unchanged_for, NOW, checks=2)
    return FileFinding(history, Judgement(condition, "of a reason", "Do something."), Attribution())


def survey(*findings: FileFinding, **unreadable: str) -> Survey:
    return Survey(NOW, "listOpenFiles", GATE, findings, unreadable)


def recovery(path: str, outcome: Outcome) -> Recovery:
    return Recovery(path, outcome, "of a reason", "its holder is dead", None, FileChange(5, 9, 5, 1, 2), NOW, 3.0, 1)


def rescued(*recoveries: Recovery) -> RecoveryReport:
    findings = [finding(recovery.path, FileCondition.HOLDER_DEAD) for recovery in recoveries]
    intents = tuple(Intent(finding, Decision(True, "its holder is dead")) for finding in findings)
    run = RecoveryRun(run_id="run", recoveries=recoveries)
    return RecoveryReport(survey(*findings), intents, run)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("/data/*", AllowedPath("/data/*")),
        ("*.tmp", AllowedPath("*.tmp")),
        ("/data/*=orders", AllowedPath("/data/*", "orders")),
        ("*.tmp=application_1700000000000_0001", AllowedPath("*.tmp", "application_1700000000000_0001")),
        ("/data/day=2026-01-01/*", AllowedPath("/data/day=2026-01-01/*")),
        ("/data/day=2026-01-01/*=orders", AllowedPath("/data/day=2026-01-01/*", "orders")),
        ("/data/day[=]2026-01-01", AllowedPath("/data/day[=]2026-01-01")),
        ("/data/day[=]2026-01-01=orders", AllowedPath("/data/day[=]2026-01-01", "orders")),
        ("/two\nlines/*=orders", AllowedPath("/two\nlines/*", "orders")),
    ],
)
def test_a_path_is_allowed_for_an_application_or_for_the_one_it_is_attributed_to(
    text: str, allowed: AllowedPath
) -> None:
    assert allowed_path(text) == allowed


@pytest.mark.parametrize("text", ["", "=orders", "/data/*="])
def test_an_allow_rule_that_allows_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="PATTERN"):
        allowed_path(text)


def test_durations_and_names_are_read_as_people_write_them() -> None:
    settings = RecoveryRequest.from_mapping(
        {
            "path": "/data",
            "patterns": "*.tmp",
            "min_age": "1h30m",
            "limits": "unlimited",
            "backend": "hdfs-debug",
            "dry_run": "true",
        }
    ).settings()

    assert settings.rules.min_age == timedelta(minutes=90)
    assert settings.search.patterns == ("*.tmp",)
    assert (settings.limits, settings.backend, settings.dry_run) == (RecoveryLimits.unlimited(), Backend.DEBUG, True)


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        ({}, RecoveryLimits(512, 1000, timedelta(minutes=15))),
        ({"per_datanode": 500}, RecoveryLimits(500, 1000)),
        ({"in_all": "100"}, RecoveryLimits(100, 100)),
        ({"per_datanode": "2000", "in_all": 20000, "deadline": "1h"}, RecoveryLimits(2000, 20000, timedelta(hours=1))),
        ({"limits": "unlimited", "deadline": "1h"}, RecoveryLimits(None, None, timedelta(hours=1))),
    ],
)
def test_a_request_sets_the_limits_of_a_large_cluster(fields: dict[str, object], limits: RecoveryLimits) -> None:
    assert RecoveryRequest.from_mapping({"path": "/data", **fields}).settings().limits == limits


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"min_age": "soon"}, "min_age"),
        ({"limits": "wild"}, "limits"),
        ({"backend": "magic"}, "backend"),
        ({"pattern": "*.tmp"}, "pattern"),
        ({"path": "data"}, "path"),
        ({"settle": "-1s"}, "settle"),
        ({"approve": ["/data/a"]}, "approved_by"),
    ],
)
def test_a_wrong_field_is_refused_by_name(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        RecoveryRequest.from_mapping({"path": "/data", **wrong}).settings()


_FOLDERS = ("/data/landing", "/user/streams/")


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "/data/landing"},
        {"path": "/data/landing/"},
        {"path": "/data//landing/day=1/part-0"},
        {"path": "/user/streams", "approve": ["/data/landing/a", "/user/streams/b"]},
    ],
)
def test_a_request_of_what_lies_in_the_folders_is_within_them(fields: dict[str, object]) -> None:
    RecoveryRequest.from_mapping({**fields, "approved_by": "jane"}).require_within(_FOLDERS)
    RecoveryRequest.from_mapping({**fields, "approved_by": "jane"}).require_within(("/",))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"path": "/etc"}, "/etc"),
        ({"path": "/data"}, "/data"),
        ({"path": "/"}, "/"),
        ({"path": "/data/landing2"}, "/data/landing2"),
        ({"path": "/data/landing", "approve": ["/data/landing/a", "/data/other/b"]}, "/data/other/b"),
    ],
)
def test_a_request_of_anything_beside_the_folders_is_refused_by_name(fields: dict[str, object], named: str) -> None:
    request = RecoveryRequest.from_mapping({**fields, "approved_by": "jane"})
    with pytest.raises(InvalidInput, match=f"^{named} .*/data/landing, /user/streams"):
        request.require_within(_FOLDERS)


def test_an_awaited_condition_survives_the_database() -> None:
    awaited = OpenFileCondition(
        path="/data", patterns=("*.tmp",), owner="alice", quiet=timedelta(seconds=90), min_age=timedelta(minutes=1)
    )

    assert OpenFileCondition.from_mapping(awaited.to_mapping()) == awaited


def test_only_files_that_were_measured_unchanged_for_long_enough_are_stuck() -> None:
    awaited = OpenFileCondition(path="/data", quiet=timedelta(minutes=10), at_least=2)
    quiet = finding("/data/a", unchanged_for=timedelta(minutes=10))
    young = finding("/data/b", unchanged_for=timedelta(minutes=9))
    lost = finding("/data/c", FileCondition.UNRECOVERABLE)

    assert stuck_files(awaited, survey(quiet, young, lost)) == (quiet, lost)
    assert is_met(awaited, survey(quiet, young, lost))
    assert not is_met(awaited, survey(quiet, young))


def test_nothing_is_open_only_when_nothing_unreadable_is_open_either() -> None:
    awaited = OpenFileCondition.from_mapping({"path": "/data", "until": "none"})

    assert is_met(awaited, survey())
    assert not is_met(awaited, survey(finding("/data/a")))
    assert not is_met(awaited, Survey(NOW, "fsck", GATE, (), {"/data/b": "Permission denied"}))


def test_the_report_of_many_stuck_files_is_bounded() -> None:
    awaited = OpenFileCondition(path="/data", quiet=timedelta(0))
    report = condition_report(awaited, survey(*(finding(f"/data/{number}") for number in range(100))))

    assert (report["open"], report["stuck"], len(report["stuck_paths"])) == (100, 100, 20)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/a b/ü 流", "/a b/ü 流"),
        ("/two\nlines\tand tab", "/two\\nlines\\tand tab"),
        ("/\x1b[31mred", "/\\x1b[31mred"),
        ("/back\\slash", "/back\\\\slash"),
        ("/\u202etfel", "/\\u202etfel"),
    ],
)
def test_a_path_can_neither_break_a_table_nor_control_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_brackets_in_a_path_are_not_markup() -> None:
    rows = lines(findings_table([finding("/data/[red]x[/red]")], NOW))

    assert any("/data/[red]x[/red]" in row for row in rows)


def test_the_result_for_xcom_is_bounded_counts_everything_and_has_the_failed_first() -> None:
    failed = recovery("/data/z", Outcome.GAVE_UP)
    done = rescued(*(recovery(f"/data/{number}", Outcome.CLOSED) for number in range(500)), failed)
    report = bounded(done, rows=50)

    assert report["counts"]["outcomes"] == {"closed": 500, "gave up": 1}
    assert (report["counts"]["open"], report["counts"]["failed"], report["counts"]["bytes_lost"]) == (501, 1, 501 * 4)
    assert [len(report[name]) for name in ("findings", "plan", "recoveries")] == [50, 50, 50]
    assert report["recoveries"][0]["path"] == "/data/z"


def test_a_table_of_many_says_how_many_it_leaves_off() -> None:
    many = [recovery(f"/data/{number}", Outcome.CLOSED) for number in range(12)]

    assert "and 2 more" in "\n".join(lines(recoveries_table(many, rows=10)))
    open_files = [finding(f"/data/{number}") for number in range(12)]
    assert "and 2 more" in "\n".join(lines(findings_table(open_files, NOW, rows=10)))


def test_the_summary_names_the_files_that_are_left() -> None:
    leaked = Intent(finding("/data/l", FileCondition.LEAKED), Decision(False, "nobody approved it"))
    done = rescued(recovery("/data/a", Outcome.CLOSED), recovery("/data/b", Outcome.DENIED))
    done = replace(done, intents=(*done.intents, leaked))

    assert summary(done) == (
        "3 open files; 1 closed, 1 denied; 1 stuck and left alone; 8 bytes lost that a reader could see"
    )


def unprobed(path: str, refusal: str, *, retryable: bool = False) -> Intent:
    why = Judgement(FileCondition.UNKNOWN, f"not learned: {refusal}", brief="whose holder could not be probed")
    silent = replace(finding(path), judgement=why, holder=HolderStatus(refusal=refusal, retryable=retryable))
    return Intent(silent, Decision(False, "it is unknown"))


def not_recovered(*intents: Intent) -> RecoveryReport:
    return RecoveryReport(survey(*(intent.finding for intent in intents)), intents, RecoveryRun("run", ()))


@pytest.mark.parametrize(("retryable", "raised"), [(False, Conflict), (True, Unavailable)])
def test_a_file_whose_holder_could_not_be_probed_is_not_done(retryable: bool, raised: type[KstreamError]) -> None:
    done = not_recovered(unprobed("/data/a", DENIED, retryable=retryable))
    error = failure(done, "/data")

    assert done.incomplete
    assert summary(done) == f"1 open files; nothing was recovered; 1 whose holder could not be probed ({DENIED})"
    assert type(error) is raised
    assert error.message == f"1 files were not recovered: 1 whose holder could not be probed ({DENIED})"
    assert bounded(done, rows=50)["counts"]["unprobed"] == 1


def test_files_left_open_for_good_reason_are_done_and_the_summary_says_why() -> None:
    sorts = ["growing", "younger than min_age, 10m", "growing"]
    findings = [
        replace(finding(f"/data/{number}"), judgement=Judgement(FileCondition.IDLE, "of a reason", brief=sort))
        for number, sort in enumerate(sorts)
    ]
    done = not_recovered(*(Intent(finding, Decision(False, "of a reason")) for finding in findings))

    assert not done.incomplete
    assert summary(done) == "3 open files; nothing to recover; 2 growing, 1 younger than min_age, 10m"


def test_the_summary_of_a_dry_run_counts_the_planned_probes() -> None:
    probed = Intent(finding("/data/a"), Decision(False, "it is idle"), would_probe=True)
    planned = RecoveryReport(survey(probed.finding), (probed,))

    assert summary(planned) == "1 open files; 1 to be probed, and recovered if their holders are dead"


def test_a_dry_run_is_complete_although_it_foresees_a_refusal() -> None:
    assert not replace(not_recovered(unprobed("/data/a", DENIED)), run=None).incomplete


def test_a_list_names_what_a_single_check_can_not_show() -> None:
    quiet, once = finding("/data/a"), finding("/data/b", FileCondition.UNWATCHED)
    advice = hints([quiet, once])

    assert len(advice) == 2
    assert "1 not watched long enough: list them again" in advice[0]
    assert "1 idle: their holders may be dead" in advice[1]


def test_a_host_in_the_list_is_called_a_host() -> None:
    row = finding("/data/a")
    on_host = replace(row, history=replace(row.history, file=OpenFile("/data/a", host="worker7")))

    assert any("a client on worker7" in line for line in lines(findings_table([on_host], NOW)))
    held = replace(row, history=replace(row.history, file=OpenFile("/data/a", holder="DFSClient_1")))
    assert any("DFSClient_1" in line for line in lines(findings_table([held], NOW)))


@pytest.mark.parametrize(
    ("outcomes", "raised"),
    [
        ((Outcome.CLOSED, Outcome.GAVE_UP), Unavailable),
        ((Outcome.DENIED, Outcome.NOT_TRIED), Unavailable),
        ((Outcome.CHANGED,), Unavailable),
        ((Outcome.DENIED, Outcome.LEAKED), Conflict),
    ],
)
def test_a_failure_names_the_open_files_and_says_whether_a_retry_helps(
    outcomes: tuple[Outcome, ...], raised: type[KstreamError]
) -> None:
    error = failure(rescued(*(recovery(f"/data/{outcome}", outcome) for outcome in outcomes)), "/data")

    assert type(error) is raised
    assert all(f"1 {outcome}" in error.message for outcome in outcomes if not outcome.settled)


def test_the_one_value_of_an_operator_is_a_mapping_of_the_other_fields() -> None:
    ours = {"path": "/data", "dry_run": "True"}
    fields = {"patterns": ["*.tmp"], "owner": "", "holder": None, "limits": "unlimited"}
    request = RecoveryRequest.from_mapping(fields_with(ours, fields, "request"))
    assert request == RecoveryRequest(path="/data", patterns=("*.tmp",), limits=LimitsName.UNLIMITED, dry_run=True)
    assert RecoveryRequest.from_mapping(fields_with(ours, None, "request")).patterns == ()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"path": "/other"}, "request has path, which is a parameter beside it"),
        ({"dry_run": False, "path": "/"}, "request has dry_run, path"),
        ("{'patterns': []}", "allowed is a mapping"),
        (["patterns"], "allowed is a mapping"),
        ({"pattern": "*"}, "pattern"),
    ],
)
def test_the_one_value_of_an_operator_is_refused_by_name(value: object, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        RecoveryRequest.from_mapping(fields_with({"path": "/data", "dry_run": False}, value, "request"))


def test_rows_are_printed_as_they_are_kept() -> None:
    """Printed ones are made one at a time."""
    closed = recovery("/data/a", Outcome.CLOSED)
    done = RecoveryReport(survey(finding("/data/a")), (), RecoveryRun("run", (closed,)))
    printed = done.to_print()
    rows = {key: [row() for row in printed[key]] for key in ("findings", "recoveries")}

    assert {**printed, **rows} == done.to_json()
    assert [row["path"] for row in rows["recoveries"]] == ["/data/a"]
