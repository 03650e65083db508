"""A comparison of the running generation with the spec as declared now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.persisted_spec import UnknownSpec
from airflow_kstream.model.streams.spec_fingerprint import Change, change, differences, fingerprint
from airflow_kstream.model.streams.stream import StreamSpec

# The reason of a restart with `on_change: restart`.
DECLARED_SPEC_CHANGED = "the declared spec changed"
# A person who changes a declaration back and forth is heard again after it, or at once with `streams restart`.
_DUEL = timedelta(days=1)


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


def duel(spec: StreamSpec, claims: Sequence[Claim], now: datetime) -> str:
    """Return why another restart for this spec would be a duel of two declarations; empty if it would not.

    `claims` are the newest ones, the running generation's first. The running spec was replaced by the declared one
    within a day, and then replaced it in turn, so neither declaration will ever be content. One change and its
    revert are no duel.
    """
    ours = fingerprint(spec)
    # What runs in place of a declared spec was declared by nobody lately.
    recent = [claim for claim in claims if now - claim.claimed_at < _DUEL and claim.instead_of is None]
    if not recent:
        return ""
    running, *earlier = recent
    replaced = next((n for n, claim in enumerate(earlier) if claim.spec_fingerprint == ours), None)
    if replaced is None or all(claim.spec_fingerprint != running.spec_fingerprint for claim in earlier[replaced:]):
        return ""
    former = earlier[replaced]
    return (
        f"the declared spec already ran as generation {former.generation} (claimed by {former.claimed_by}), and "
        f"generation {running.generation} (claimed by {running.claimed_by}) replaced it by the one from before: this "
        "stream seems to be declared twice. Remove one of its declarations, or make them equal; "
        f"`kstream streams restart {spec.name}` starts the declared one all the same"
    )


def _doubt(why: str) -> str:
    return f"could not determine whether the declared spec would submit another job: {why}"
