"""A changed spec that ends before its first commit, and the one that committed last, which then takes its place.

It goes back once: if the former spec ends before a commit, too, the pace of restarts alone decides. The declared spec
is tried again when it changes, or after a person's `restart` or `start`. `SpecChange` compares the running generation
with the spec as declared now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from airflow_kstream.model.streams.declarations import Change, change, differences, fingerprint
from airflow_kstream.model.streams.generation import Claim, FailedSpec, Missing, Position
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import FormerSpec
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.ends.after_end import recorded_end

# The reason of a restart with `on_change: restart`.
DECLARED_SPEC_CHANGED = "the declared spec changed"
# A person who changes a declaration back and forth is heard again after it, or at once with `streams restart`.
_DUEL = timedelta(days=1)

# Whatever was submitted, these ends would have come.
_NO_FAULT_OF_THE_SPEC = {EndKind.PREEMPTED, EndKind.NODE_LOST, EndKind.KILLED, EndKind.LIFETIME, EndKind.DONE}
# A job whose source brings nothing commits nothing, and its spec may be good.
_LONG = timedelta(days=1)


def may_go_back(ends: Sequence[PastEnd]) -> bool:
    """Return whether the last of these ends may be the fault of its generation's spec.

    A claim that brings no application may be the crash of its supervisor, and deployments often restart supervisors:
    it takes two in a row.
    """
    end = ends[-1]
    if end.worked or end.shared or end.killed_by or end.kind in _NO_FAULT_OF_THE_SPEC or end.lasted >= _LONG:
        return False
    before = ends[-2] if len(ends) > 1 else None
    again = before is not None and before.kind is EndKind.NEVER_RAN and before.generation == end.generation - 1
    return end.kind is not EndKind.NEVER_RAN or again


def committed(claim: Claim, later: Claim) -> bool:
    """Return whether a generation committed, by the positions at its own claim and at the next one."""
    if not later.positions or Missing.POSITIONS in claim.file.missing | later.file.missing:
        return False
    return all(_moved_on(claim.positions.get(path), position) for path, position in later.positions.items())


def why_it_stays(spec: StreamSpec, former: Claim) -> str:
    """Return why the spec of a former claim can't take the place of this one; empty if it can."""
    if isinstance(former.spec, UnknownSpec):
        return former.doubt
    if not former.file.copied:
        return f"no supervisor kept the declaration that generation {former.generation} was submitted with"
    if former.spec.engine is not spec.engine:
        return f"generation {former.generation} was a job of {former.spec.engine.title()}'s"
    if former.spec.checkpoints != spec.checkpoints:
        return f"generation {former.generation} wrote other checkpoints"
    return ""


def another_engine(spec: StreamSpec, observation: Observation) -> str:
    """Return why the declared spec can't follow what runs, if that is another engine's; empty if it is not.

    At its horizon, too: stopped, it would only end sooner, and nothing would follow.
    """
    runs = spec_to_stop(spec, observation.claim)
    if runs.engine is spec.engine:
        return ""
    return (
        f"generation {observation.generation} is a job of {runs.engine.title()}'s, and {spec.engine.title()} can't go "
        "on with its state. Declare the new one under another name, or stop this one first: `kstream streams stop "
        f"{spec.name}`"
    )


def spec_to_stop(spec: StreamSpec, claim: Claim | None) -> StreamSpec:
    """Return the spec as which a generation is stopped: the declared one, or that of a claim for another engine."""
    submitted = claim.spec if claim else None
    return submitted if isinstance(submitted, StreamSpec) and submitted.engine is not spec.engine else spec


def words_of(former: FormerSpec) -> str:
    """Say which spec is submitted, and why it is not the declared one."""
    failed = former.instead_of.generation
    return (
        f"generation {failed} ended with the declared spec before its first commit, so it is submitted with the spec "
        f"of generation {former.generation}"
    )


def failed_spec_words(stream: str, failed: FailedSpec | None) -> str:
    """Say that what runs is not what is declared, and what to do; empty if it is, or may soon be."""
    return f"{failed.words}; `kstream streams restart {stream}` tries it again" if failed else ""


def _moved_on(before: Position | None, after: Position) -> bool:
    if before is None:
        return False
    return after.commit > before.commit and before.query in {None, after.query}


@dataclass(frozen=True)
class SpecDifference:
    """A difference between the declared spec and the one that runs.

    `fields` (dotted) differ, as far as they can be compared; `doubt`: why it is UNKNOWN.
    """

    change: Change
    fields: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        lines = tuple(f"what runs was declared with another {field}" for field in self.fields)
        return (self.doubt, *lines) if self.doubt else lines


@dataclass(frozen=True)
class SpecChange:
    """The declared spec beside those that were submitted: one for a decision, which finds each of its answers once."""

    spec: StreamSpec
    observation: Observation

    @cached_property
    def declared(self) -> str:
        """Return the declared spec's fingerprint."""
        return fingerprint(self.spec)

    @cached_property
    def difference(self) -> SpecDifference:
        """Compare the declared spec with the newest claim's. UNKNOWN is never a reason to restart anything."""
        claim = self.observation.claim
        if claim is None or claim.adoption.application is not None:
            return SpecDifference(Change.NONE)
        if isinstance(claim.spec, UnknownSpec) or not claim.submitted_by_us:
            return SpecDifference(Change.UNKNOWN, (), _doubt(claim.doubt))
        kind = change(self.declared, claim.spec_fingerprint)
        fields = differences(self.spec, claim.spec) if kind is not Change.NONE else ()
        why = "the claim's fingerprint was made by another version" if kind is Change.UNKNOWN else ""
        return SpecDifference(kind, fields, _doubt(why) if why else "")

    @cached_property
    def failed(self) -> FailedSpec | None:
        """Return the failure of the declared spec if the newest generation was submitted in its place, else None."""
        claim = self.observation.claim
        failed = claim.instead_of if claim else None
        if claim is None or failed is None or failed.fingerprint != self.declared:
            return None
        asked = self.observation.desired.restarts(claim.generation)
        return None if asked or self._spoken(claim.claimed_at) else failed

    @cached_property
    def former(self) -> FormerSpec | None:
        """Return the spec that is submitted next in place of the declared one; None if that is the declared one."""
        claim, end = self.observation.claim, recorded_end(self.observation)
        if claim is None or claim.generation != self.observation.generation:
            return None
        if self.failed:
            return FormerSpec(claim.generation, self.failed)
        if end is None or not end.back_to or claim.spec_fingerprint != self.declared or self._spoken(end.at):
            return None
        return FormerSpec(end.back_to, FailedSpec(self.declared, claim.generation))

    def _spoken(self, since: datetime) -> bool:
        """Return whether a person spoke after that. Both are the NameNode's times."""
        spoken = self.observation.desired.at
        return spoken is not None and spoken >= since


def duel(spec: StreamSpec, claims: Sequence[Claim], now: datetime) -> str:
    """Return why another restart for this spec would be a duel of two declarations; empty if it would not.

    `claims` are the newest ones, the running generation's first. The running spec was replaced by the declared one
    within a day, and then replaced it in turn, so neither declaration will ever be content. One change and its
    revert are not a duel.
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
