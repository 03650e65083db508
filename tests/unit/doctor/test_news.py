"""What a report has that the one before had not."""

from __future__ import annotations

from airflow_kstream.model.finding import Concern, DoctorReport, Finding, NotChecked, Severity, UndecidedCheck
from airflow_kstream.policy.doctor.news import known_from_json, known_to_json, news


def found(check: str, *streams: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(check, severity, "w", "f", "p", "s", concerns=tuple(Concern(name, "it fails") for name in streams))


def test_everything_is_new_at_first_and_nothing_the_next_time() -> None:
    report = DoctorReport((found("a", "orders"), found("b")))
    first = news(report, {})
    assert first.fresh == report.findings
    again = news(report, known_from_json(known_to_json(first.known)))
    assert (again.fresh, again.gone, again.alarming) == ((), (), False)


def test_a_new_stream_of_a_known_finding_is_new_alone() -> None:
    (fresh,) = news(DoctorReport((found("a", "orders", "clicks"),)), {"a": frozenset({"orders"})}).fresh
    assert fresh.streams == ("clicks",)


def test_what_is_found_no_longer_is_gone_unless_it_could_not_be_asked() -> None:
    before = {"a": frozenset({"orders"}), "b:x": frozenset[str]()}
    result = news(DoctorReport((), (UndecidedCheck("b", NotChecked("it", "it is away")),)), before)
    assert result.gone == ("a",)
    assert result.known == {"b:x": frozenset()}


def test_a_note_alarms_nobody() -> None:
    assert not news(DoctorReport((found("a", severity=Severity.NOTE),)), {}).alarming


def test_what_can_t_be_read_was_never_known() -> None:
    assert known_from_json(None) == known_from_json(["a"]) == {}
    assert known_from_json({"a": ["x"], "b": 3}) == {"a": frozenset({"x"})}
