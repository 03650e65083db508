"""What is deleted of dead generations of a Flink stream, and what never is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.streams.flink_job import flink_job_id
from airflow_kstream.model.streams.generation import Adoption, Claim, ClaimStart
from airflow_kstream.model.streams.resume import NOTHING, ResumePoint
from airflow_kstream.policy.streams.flink.resume import superseded
from airflow_kstream.supervise.streams.orders.desired import start_from
from tests.simulated.flink import FLINK_SPEC, FlinkLife
from tests.simulated.life import Life
from tests.simulated.yarn import START, STREAM, claim_of


def claim(number: int, made_by: int | None, spec: str = "blue") -> Claim:
    job = flink_job_id(STREAM, made_by or 0, f"nonce{made_by}")
    begun = NOTHING if made_by is None else ResumePoint(f"/flink/orders/{job}/chk-{made_by}", made_by, made_by)
    return replace(
        claim_of(FLINK_SPEC, number, START),
        spec_fingerprint=spec,
        start=ClaimStart(resume=begun),
    )


def gone(claims: list[Claim], keep: int = 3) -> list[int]:
    newest_first = sorted(claims, key=lambda each: -each.generation)
    return sorted(each.generation for each in superseded(STREAM, newest_first, keep))


def lives(newest: int) -> list[Claim]:
    """Generations each of which began with what the one before it left."""
    return [claim(number, number - 1 or None) for number in range(1, newest + 1)]


def test_the_states_of_the_last_generations_stay() -> None:
    # The newest one began with 6's: 4, 5 and 6 stay.
    assert gone(lives(7)) == [1, 2, 3]


@pytest.mark.parametrize("newest", range(1, 5))
def test_nothing_goes_before_there_are_enough(newest: int) -> None:
    assert gone(lives(newest)) == []


def test_generations_that_completed_nothing_push_nobody_out() -> None:
    """A night of a hundred failed starts."""
    night = [*lives(4), *(claim(number, 3) for number in range(5, 105))]
    assert gone(night) == []


def test_the_way_back_to_the_former_spec_stays() -> None:
    changed = [claim(number, number - 1 or None, "blue" if number <= 3 else "green") for number in range(1, 11)]
    # Green began with what 3 left.
    assert gone(changed) == [1, 2, 4, 5, 6]


def test_an_old_state_that_a_person_named_stays() -> None:
    claims = lives(9)
    second = claims[2].start.resume
    assert second is not None
    claims[8] = replace(claims[8], start=ClaimStart(resume=replace(second, made_by=None)))
    assert gone(claims) == [1, 3, 4]


def test_nothing_of_an_adopted_job_goes() -> None:
    claims = lives(9)
    claims[0] = replace(claims[0], adoption=Adoption("application_1_0001"))
    assert 1 not in gone(claims)


def test_closed_folders_go_with_their_savepoints(life: Life) -> None:
    flink = FlinkLife(life, replace(FLINK_SPEC, savepoints=replace(FLINK_SPEC.savepoints, keep=1)))
    start_from(life.run, "a new stream", fresh=True)
    life.begin()
    left = []
    for number in range(2, 10, 2):
        flink.complete(number)
        left.append((f"{flink.folder}/chk-{number}", flink.save(number + 1)))
        life.request_restart()
        life.reconcile()
    there = [paths for paths in left if any(f"{path}/_metadata" in flink.hdfs.files for path in paths)]
    assert there == left[-1:]


def test_a_folder_of_a_former_user_stops_no_removal_of_others(life: Life) -> None:
    flink = FlinkLife(life)
    start_from(life.run, "a new stream", fresh=True)
    life.begin()
    folders = []
    for number in range(1, 5):
        flink.complete(number)
        folders.append(flink.folder)
        if number == 4:
            flink.hdfs.owners[folders[1]] = "former"
            flink.reopen(replace(FLINK_SPEC, savepoints=replace(FLINK_SPEC.savepoints, keep=1)))
        life.request_restart()
        report = life.reconcile()
    there = [number for number in range(1, 5) if f"{folders[number - 1]}/chk-{number}/_metadata" in flink.hdfs.files]
    assert there == [2, 4]
    assert all(f"deleted {folders[number - 1]}" in str(report.done) for number in (1, 3))


def test_a_copy_of_a_keytab_goes_from_where_it_was_submitted_to(life: Life) -> None:
    flink = FlinkLife(life, replace(FLINK_SPEC, conf={**FLINK_SPEC.conf, "yarn.staging-directory": "/staging"}))
    start_from(life.run, "a new stream", fresh=True)
    life.begin()
    flink.complete(1)
    copy = f"/staging/.flink/{flink.application.id}/job.keytab"
    flink.hdfs.write(copy, "keys")
    flink.reopen(FLINK_SPEC)
    life.request_restart()
    life.reconcile()
    assert copy not in flink.hdfs.files
