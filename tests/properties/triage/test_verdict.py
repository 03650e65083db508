"""A verdict on any text: foreign logs may hold anything, and none of it is an error of ours."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.logs.diagnosis import Confidence, DiagnosisOutcome
from airflow_kstream.policy.triage.sources import ScannedLog
from airflow_kstream.policy.triage.verdict import diagnose
from airflow_kstream.supervise.triage.scan import own_catalogue, scanner_of
from airflow_kstream.views.triage import diagnosis_lines, diagnosis_page

EXAMPLES = [example for signature in own_catalogue().signatures.values() for example in signature.examples]
HEADS = [
    "26/03/01 10:00:00 ERROR a: ",
    "2026-03-01T10:00:09.123+0800 WARN b: ",
    "2026-03-01 10:00:00 -9999 INFO ",
    "99/99/99 99:99:99 FATAL ",
    "9999-12-31 23:59:59,999 ERROR ",
    "Mar  1 10:00:00 host kernel: ",
    "10:00:00.123 [main] ERROR c - ",
    "\tat ",
    "Caused by: ",
    "LogType:stderr",
    "Container: container_1_1_01_000001 on a_1",
    "",
]
words = st.one_of(st.sampled_from(EXAMPLES), st.text(max_size=30))
logs = st.lists(st.builds("{}{}".format, st.sampled_from(HEADS), words), max_size=30).map("\n".join)
names = st.sampled_from(["driver/stderr", "namenode.log", "container_1_1_01_000002/stdout"])


@given(st.dictionaries(names, logs, max_size=3), st.booleans())
def test_any_text_gets_a_verdict_that_can_be_shown(texts: dict[str, str], runs: bool) -> None:
    scanner = scanner_of(own_catalogue())
    scanned = [ScannedLog(name, scanner.scan([text.encode(errors="replace")])) for name, text in texts.items()]
    verdict = diagnose(scanned, own_catalogue(), runs=runs)
    assert (verdict.outcome is DiagnosisOutcome.CAUSE) == bool(verdict.cause) == (verdict.evidence is not None)
    assert verdict.confidence is not Confidence.HIGH or not verdict.others
    assert len(verdict.timeline) <= 10
    json.dumps(verdict.to_json())
    assert list(diagnosis_lines(verdict))
    assert diagnosis_page(verdict, "any").startswith("<!doctype html>")
