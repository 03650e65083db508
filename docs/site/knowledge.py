"""The pages of what the doctor checks, and of the causes that triage knows."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.logs.signature import Signature, SignatureKind, signatures_in
from airflow_kstream.policy.doctor.checks import CHECKS
from airflow_kstream.supervise.triage.scan import signature_files
from docs.site.markdown import block, page, table, word, words

_TITLES = {"hdfs": "HDFS", "yarn": "YARN"}


def checks() -> str:
    """Return the page of the doctor's checks."""
    rows = ((word(check.id), check.question, words(check.source)) for check in CHECKS)
    heads = ("finding", "the question", "the rule's source")
    return page("Checks of the doctor", "`kstream doctor --list` prints the same.", table(heads, rows))


def causes() -> str:
    """Return the page of all causes in the catalogue, for a search by the words of a log."""
    return page("Causes that triage knows", "`kstream triage` names the one that it was.", *_groups())


def _groups() -> Iterator[str]:
    for file in signature_files():
        known = signatures_in(file.read_text(encoding="utf-8"))
        texts = [_text(name, one) for name, one in known.items() if one.kind is SignatureKind.CAUSE]
        title = file.name.removesuffix(".yaml")
        yield "\n\n".join([f"## {_TITLES.get(title, title.capitalize())}", *texts]) if texts else ""


def _text(name: str, signature: Signature) -> str:
    line = block(signature.examples[0].splitlines()[0], "text") if signature.examples else ""
    remedy = f"**Remedy:** {words(signature.remedy)}" if signature.remedy else ""
    heading = f"### {words(signature.title[0].upper() + signature.title[1:])} {{#{name}}}"
    return "\n\n".join(part for part in (heading, line, words(signature.means), remedy) if part)
