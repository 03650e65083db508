"""A comparison of the running generation with the spec as declared now."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_kstream.model.generation import Claim
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.spec_fingerprint import Change, change, differences
from airflow_kstream.model.stream import StreamSpec


@dataclass(frozen=True)
class SpecChange:
    """A change of the spec. `fields` (dotted) differ, as far as they can be compared; `doubt`: why it is UNKNOWN."""

    change: Change
    fields: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        lines = tuple(f"what runs was declared with another {field}" for field in self.fields)
        return (self.doubt, *lines) if self.doubt else lines


def spec_change(spec: StreamSpec, claim: Claim | None) -> SpecChange:
    """Compare the spec with the claim's. UNKNOWN is never a reason to restart anything."""
    if claim is None or claim.adopted is not None:
        return SpecChange(Change.NONE)
    if isinstance(claim.spec, UnknownSpec) or not claim.submitted_by_us:
        return SpecChange(Change.UNKNOWN, (), _doubt(claim.doubt))
    kind = change(spec, claim.spec_fingerprint)
    fields = differences(spec, claim.spec) if kind is not Change.NONE else ()
    why = "the claim's fingerprint was made by another version" if kind is Change.UNKNOWN else ""
    return SpecChange(kind, fields, _doubt(why) if why else "")


def _doubt(why: str) -> str:
    return f"could not determine whether the declared spec would submit another job: {why}"
