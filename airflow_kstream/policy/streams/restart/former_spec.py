"""A changed spec that ends before its first commit, and the one that committed last, which then takes its place.

It goes back once: if the former spec ends before a commit, too, the pace of restarts alone decides. The declared spec
is tried again when it changes, or after a person's `restart` or `start`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow_kstream.model.streams.generation import Claim, FailedSpec, Missing, Position
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.persisted_spec import UnknownSpec
from airflow_kstream.model.streams.plan import FormerSpec
from airflow_kstream.model.streams.stream import StreamSpec

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
    if former.spec.checkpoints != spec.checkpoints:
        return f"generation {former.generation} wrote other checkpoints"
    return ""


def words_of(former: FormerSpec) -> str:
    """Say which spec is submitted, and why it is not the declared one."""
    failed = former.instead_of.generation
    return (
        f"generation {failed} ended with the declared spec before its first commit, so it is submitted with the spec "
        f"of generation {former.generation}"
    )


def failed_spec_words(stream: str, failed: FailedSpec | None) -> str:
    """Say that what runs is not what is declared, and what to do; empty if it is, or may soon be."""
    return f"{instead_of_words(failed)}; `kstream streams restart {stream}` tries it again" if failed else ""


def instead_of_words(failed: FailedSpec) -> str:
    return (
        f"its declared spec does not run: generation {failed.generation} ended with it before its first commit, and "
        "the spec that committed last took its place"
    )


def _moved_on(before: Position | None, after: Position) -> bool:
    if before is None:
        return False
    return after.commit > before.commit and before.query in {None, after.query}
