"""The catalogue: each signature's examples are tests, and an operator's file is read like our own."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.known_faults import KNOWN_FAULTS, HadoopVersion, described, mended
from airflow_kstream.model.log_scan.engines import HyperscanEngine, PlainEngine
from airflow_kstream.model.logs.signature import Catalogue, Signature, SignatureKind
from airflow_kstream.policy.doctor import checks
from airflow_kstream.policy.triage.templates import TROUBLE
from airflow_kstream.supervise.triage.scan import catalogue_with, own_catalogue, scanner_of, signature_files
from airflow_kstream.views.triage import diagnosis_lines
from tests.simulated.logs import DRIVER, diagnosed, died, driver, failing
from tests.simulated.regex_steps import steps_of, words_of

ALL = own_catalogue().signatures
NUMBER = re.compile(r"\b(?:HDFS|YARN|HADOOP|SPARK|FLINK|KAFKA|HIVE|HBASE|JDK|HTTPCLIENT)-[0-9]+\b")
# A repetition without a bound; a class of characters before it, or a group, or one character.
UNBOUNDED = re.compile(r"(?<!\\)[*+]|\{\d+,\}")
BOUND = re.compile(r"\{\d*,(\d+)\}")
WITH_PATTERNS = [name for name, signature in ALL.items() if signature.patterns]
CAUSES = [name for name, signature in ALL.items() if signature.kind is SignatureKind.CAUSE and signature.patterns]


def test_a_signature_matches_its_examples_alone() -> None:
    for name in WITH_PATTERNS:
        signature = ALL[name]
        assert [example for example in signature.examples if not signature.matches(example)] == [], name
        assert [line for line in signature.counterexamples if signature.matches(line)] == [], name


def test_a_cause_is_named_where_its_example_ends_a_job() -> None:
    """Alone in a driver's log, right before its end: the verdict is that signature, or one that explains it."""
    for name, example in [(cause, example) for cause in CAUSES for example in ALL[cause].examples]:
        signature = ALL[name]
        repeated = "".join(failing(f"10:00:{second:02}", "failed", example) for second in range(signature.count))
        verdict = diagnosed({DRIVER: driver(repeated, died("10:00:30"))})
        better = signature.weak and verdict.cause and ALL[verdict.cause].matches(example)
        assert better or name in verdict.chain, f"{name}: {example}"


def test_both_engines_find_the_same_lines() -> None:
    scanner = scanner_of(own_catalogue())
    assert isinstance(scanner.engine, HyperscanEngine)
    plain = PlainEngine([pattern.regex for pattern in scanner.patterns])
    text = "\n".join(example for signature in ALL.values() for example in signature.examples).encode()
    found = [
        {(number, text.count(b"\n", 0, at)) for number, at in engine.matches(text)}
        for engine in (scanner.engine, plain)
    ]
    assert found[0] == found[1]
    signatures = len(own_catalogue().line_patterns())
    assert sum(number < signatures for number, _ in found[0]) > len(WITH_PATTERNS)


def hostile_to(regex: str) -> tuple[str, ...]:
    """Return what a line can repeat so that the regex begins to match again and again, and never ends."""
    words = words_of(regex)
    return "".join(words[:-1]) or words[0], words[0], f"{words[0]}7"


def test_a_line_of_twice_the_length_takes_at_most_some_twice_the_steps() -> None:
    """Steps that are counted: a hostile line costs what its length is, so a log costs what its size is."""
    known = (*(regex for name in WITH_PATTERNS for regex in ALL[name].patterns), *(each.regex for each in TROUBLE))
    unbounded = [regex for regex in known if UNBOUNDED.search(regex)]
    assert len(unbounded) > 50
    for regex in unbounded:
        for repeated in hostile_to(regex):
            once, twice = (steps_of(regex, f"{(repeated * length)[:length]}#") for length in (1000, 2000))
            assert twice < 3 * once, f"{regex} on {repeated!r}"
    once, twice = (steps_of(r"DStream@?\w* has not been", "DStream" * count) for count in (60, 120))
    assert twice > 3 * once


def test_what_a_bounded_gap_multiplies_stays_small() -> None:
    for name in WITH_PATTERNS:
        for regex in ALL[name].patterns:
            gaps = [int(most) for most in BOUND.findall(regex)]
            assert prod(gaps) <= 200_000, f"{name}: {regex}"


def test_every_consequence_can_follow_any_cause_and_explains_none() -> None:
    assert not [name for name, each in ALL.items() if each.kind is SignatureKind.CONSEQUENCE and each.leads_to]


def test_references_are_given_where_a_failure_has_a_known_fault() -> None:
    known = [name for name in CAUSES if ALL[name].references]
    assert len(known) > 2 / 3 * len(CAUSES)


def test_doctor_and_triage_know_the_numbers_of_one_table_and_no_others() -> None:
    doctors = [path.read_text() for path in Path(checks.__file__).parent.glob("*.py")]
    signatures = [file.read_text(encoding="utf-8") for file in signature_files()]
    named = {number for text in (*doctors, *signatures) for number in NUMBER.findall(text)}
    assert named == KNOWN_FAULTS.keys()


@pytest.mark.parametrize(
    ("release", "has"), [("2.8.3", False), ("2.8.4", True), ("3.0.1", False), ("3.0.2", True), ("3.1.0", True)]
)
def test_a_release_before_the_fix_in_its_branch_has_the_fault(release: str, has: bool) -> None:
    """The change logs of Hadoop 2.8.4 and 3.0.2 name it first."""
    assert mended(HadoopVersion(release), "HDFS-12070") is has
    assert "mended in 2.8.4" in described("HDFS-12070")


def test_a_verdict_shows_what_the_table_says_of_a_reference() -> None:
    leaked = failing("10:00:00", "failed", *ALL["lease-leaked"].examples)
    shown = " ".join(" ".join(diagnosis_lines(diagnosed({DRIVER: driver(leaked, died("10:00:01"))}))).split())
    assert f"references: {described('HDFS-10763')}" in shown
    assert KNOWN_FAULTS["HDFS-10763"].where in described("HDFS-10763")
    assert described("dfs.namenode.name.dir") == "dfs.namenode.name.dir"


OPERATORS = """
signatures:
  billing-away:
    kind: cause
    title: "the billing service is away"
    patterns: ['BillingException: \\[E-[0-9]+\\]']
    means: "It answers nothing between its releases."
    remedy: "Call the billing team."
    examples: ["com.example.BillingException: [E-17] no answer"]
"""


def test_an_operator_adds_a_signature_with_a_file_and_no_code(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(OPERATORS)
    log = {
        DRIVER: driver(
            failing("10:00:00", "failed", "com.example.BillingException: [E-17] no answer"), died("10:00:01")
        )
    }
    assert diagnosed(log).cause == ""
    verdict = diagnosed(log, catalogue_with([file]))
    assert (verdict.cause, verdict.signature and verdict.signature.remedy) == ("billing-away", "Call the billing team.")


def test_an_operator_replaces_a_signature_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(OPERATORS.replace("billing-away", "quota-exceeded"))
    assert catalogue_with([file]).signatures["quota-exceeded"].title == "the billing service is away"


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("kind: cause", "kind: reason", "kind is 'reason'; allowed is 'cause'"),
        ("patterns: ['BillingException", "patterns: ['(?<=x)BillingException", "no lookaround"),
        ("patterns: ['BillingException", "patterns: ['[a-z]+|BillingException", "four plain characters"),
        ("patterns: ['BillingException", r"patterns: ['Billing\s+Exception", "write [ \\t]"),
        ("means:", "meaning:", "there is no such field"),
        ('    remedy: "Call the billing team."\n', "", "a cause says what it means, and its remedy"),
        ("examples:", "leads_to: [nonsense]\n    examples:", "billing-away names nonsense"),
        ("billing-away:", "Billing_Away:", "words of a-z and 0-9"),
    ],
)
def test_a_wrong_signature_is_refused_with_its_file(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    assert before in OPERATORS
    file = tmp_path / "ours.yaml"
    file.write_text(OPERATORS.replace(before, after))
    with pytest.raises(InvalidInput) as refused:
        catalogue_with([file])
    assert complaint in str(refused.value)
    assert str(file) in str(refused.value)


def test_a_signature_has_patterns_or_parts() -> None:
    with pytest.raises(InvalidInput, match="allowed is one of them"):
        Signature(kind=SignatureKind.FACT, title="neither")
    parts = Signature(kind=SignatureKind.FACT, title="parts", all_of=("other",))
    with pytest.raises(InvalidInput, match="which the catalogue does not have"):
        Catalogue({"parts": parts})
