"""Claims of every version: fields that are read, fields that stay unknown, and no effect on another stream."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.authors import OrderFile
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.declarations import Change, change, fingerprint
from airflow_kstream.model.streams.generation import Age, Claim, Desired, DesiredState, Missing, Position
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import GiveUp, Kill, Phase, Refuse, Settled, Step, Stop, Submit
from airflow_kstream.model.streams.stream import FlinkStreamSpec, OnChange, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import (
    RestartPolicy,
    WatchPolicy,
)
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.pulse.heartbeat import verified
from airflow_kstream.policy.streams.restart.former_spec import SpecChange, SpecDifference
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.streams.folder.formats import (
    ClaimDraft,
    read_claim,
    read_desired,
    written_claim,
    written_desired,
)
from tests.simulated.values import changed
from tests.simulated.yarn import CHECKPOINT, START, TICKET_SPEC, WEEK, SimulatedYarn, application, watched

ORDER = OrderFile("/kstream/orders.streamer/x.json", "orders-1", 7, "streamer", START)
DRAFT = ClaimDraft(
    1, "nonce1", TICKET_SPEC, WEEK, {CHECKPOINT: Position("q", 3, 2)}, "test", key=KeyVersion(1, "k", START)
)
RESTARTING = replace(TICKET_SPEC, on_change=OnChange.RESTART)


def written(**changed: Any) -> Claim:
    """Return a claim of this version with other fields; None removes one."""
    fields: dict[str, Any] = json.loads(written_claim(DRAFT, "me"))
    fields |= {name: value for name, value in changed.items() if value is not None}
    return read_claim(
        json.dumps({name: fields[name] for name in fields if changed.get(name, "") is not None}), 1, START
    )


def running_under(claim: Claim) -> SimulatedYarn:
    """Return a simulated YARN an hour later, with the claim's application running."""
    world = SimulatedYarn(now=START + timedelta(hours=1), claims={1: claim}, files={"gen-000001", claim.fence})
    world.applications = [(1, application(1, ApplicationState.RUNNING))]
    reached = claim.positions.get(CHECKPOINT, Position(None, -1, -1))
    world.offsets = dict.fromkeys(range(reached.offset + 1), START - timedelta(hours=1))
    world.commits = dict.fromkeys(range(reached.commit + 1), START - timedelta(hours=1))
    return world


def dead_under(claim: Claim) -> SimulatedYarn:
    world = running_under(claim)
    world.applications = [(1, application(1, ApplicationState.FAILED, finished=START))]
    return world


def _difference(spec: StreamSpec, claim: Claim) -> SpecDifference:
    return SpecChange(spec, running_under(claim).look()).difference


def step(world: SimulatedYarn, mode: Mode = Mode.ENSURE, spec: StreamSpec = RESTARTING) -> Step:
    return next_step(spec, world.look(), watched(world.look()), mode)


class TestAnEarlierVersion:
    """Nothing of it is read but its generation, and nothing of it is touched."""

    @pytest.mark.parametrize("version", [1, 2])
    def test_it_is_refused_in_one_sentence_that_names_the_way_out(self, version: int) -> None:
        claim = read_claim(f'{{"version": {version}, "nonce": "nonce7"}}', 7, START)
        assert (claim.generation, claim.file.age, claim.foreign, claim.spec_fingerprint) == (7, Age.OLDER, True, "")
        assert f"its folder is of an earlier format (version {version}), which is not read" in claim.doubt
        assert "`kstream streams adopt` takes over what runs" in claim.doubt

    def test_what_runs_under_it_is_watched_and_told_of(self) -> None:
        claim = written(version=2)
        next_step = step(running_under(claim))
        assert isinstance(next_step, Settled)
        assert next_step.phase is Phase.RUNNING
        assert "left alone: what was submitted is not known: its folder is of an earlier format" in next_step.why
        assert _difference(RESTARTING, claim).change is Change.UNKNOWN

    def test_a_dead_one_is_a_refusal(self) -> None:
        next_step = step(dead_under(written(version=2)))
        assert isinstance(next_step, Refuse)
        assert "its folder is of an earlier format (version 2)" in next_step.why
        assert "kstream streams adopt" in next_step.why


class TestWhatThisVersionWrites:
    def test_a_claim_is_read_back(self) -> None:
        claim = read_claim(written_claim(DRAFT, "me"), 1, START)
        assert (claim.spec, claim.credentials.lifetimes, claim.positions, claim.credentials.key) == (
            TICKET_SPEC,
            WEEK,
            DRAFT.positions,
            DRAFT.key,
        )
        assert (claim.file.missing, claim.file.age, claim.foreign) == (frozenset(), Age.CURRENT, False)
        assert _difference(TICKET_SPEC, claim).change is Change.NONE

    def test_a_desired_state_is_read_back(self) -> None:
        text = written_desired(Desired(DesiredState.HELD, 4, reason="why"), "ann", "nonce1")
        assert read_desired(text, ORDER) == Desired(DesiredState.HELD, 4, "ann", START, "why", "streamer", 7)

    def test_a_changed_declaration_is_restarted_under_on_change_restart(self) -> None:
        next_step = step(running_under(written()), spec=replace(RESTARTING, arguments=("--fast",)))
        assert isinstance(next_step, Stop)
        assert next_step.why == "the declared spec changed"


class TestFieldsThatAreUnknownOrMissing:
    def test_an_unknown_field_is_dropped_wherever_it_stands(self) -> None:
        fields: dict[str, Any] = json.loads(written_claim(DRAFT, "me"))
        fields["colour"] = "blue"
        fields["spec"]["flavour"] = "blue"
        for block in ("credentials", "deploy", "restart", "stop", "watch"):
            fields["spec"][block]["colour"] = "blue"
        claim = read_claim(json.dumps(fields), 1, START)
        assert (claim.spec, claim.doubt) == (TICKET_SPEC, "")

    def test_a_negative_duration_is_read_as_the_default(self) -> None:
        """Such a claim once kept every stream of its state_dir from being submitted, stopped or held."""
        fields: dict[str, Any] = json.loads(written_claim(DRAFT, "me"))
        fields["spec"]["watch"]["look_every"] = "-1s"
        spec = read_claim(json.dumps(fields), 1, START).spec
        assert isinstance(spec, StreamSpec)
        assert spec.watch == WatchPolicy()

    def test_what_differs_for_certain_is_named_where_a_fingerprint_is_of_other_rules(self) -> None:
        kept = replace(TICKET_SPEC, conf={"spark.ssl.keyPassword": SecretRef("conn:orders")})
        claim = replace(
            read_claim(written_claim(replace(DRAFT, spec=kept), "me"), 1, START), spec_fingerprint="0:by other rules"
        )
        changed = _difference(replace(kept, arguments=("--slow",)), claim)
        assert (changed.change, changed.fields) == (Change.UNKNOWN, ("arguments",))
        assert "made by another version" in changed.words[0]
        next_step = step(running_under(claim), spec=replace(RESTARTING, arguments=("--fast",)))
        assert isinstance(next_step, Settled), "a fingerprint by other rules can't show a change of the declaration"

    def test_a_missing_policy_has_its_default(self) -> None:
        fields: dict[str, Any] = json.loads(written_claim(DRAFT, "me"))
        del (
            fields["spec"]["heartbeat"],
            fields["spec"]["stop"]["silence"],
            fields["spec"]["on_change"],
        )
        assert read_claim(json.dumps(fields), 1, START).spec == TICKET_SPEC

    @pytest.mark.parametrize("name", ["credentials", "application", "checkpoints", "conf", "deploy", "arguments"])
    def test_a_spec_without_what_makes_the_job_is_unknown_and_so_is_its_horizon(self, name: str) -> None:
        fields: dict[str, Any] = json.loads(written_claim(DRAFT, "me"))
        del fields["spec"][name]
        claim = read_claim(json.dumps(fields), 1, START)
        assert claim.spec == UnknownSpec(f"the claim's spec lacks {name}")
        world = running_under(claim)
        assert isinstance(step(world), Settled)
        assert (horizon := horizon_of(RESTARTING, world.look()))
        assert (horizon.reason, horizon.hard) == (HorizonReason.UNKNOWN, None)

    @pytest.mark.parametrize("name", ["renew_interval_seconds", "max_lifetime_seconds"])
    @pytest.mark.parametrize("value", [None, "a week", -1, 0, float("nan"), 1e300])
    def test_missing_lifetimes_are_an_unknown_horizon_and_never_none(self, name: str, value: object) -> None:
        claim = written(**{name: value})
        assert claim.file.missing == {Missing.LIFETIMES}
        assert "doesn't tell its lifetimes" in claim.doubt
        assert (horizon := horizon_of(TICKET_SPEC, running_under(claim).look()))
        assert horizon.reason is HorizonReason.UNKNOWN

    def test_lifetimes_that_are_looked_up_again_count_from_the_applications_start(self) -> None:
        claim = changed(written(max_lifetime_seconds=None), lifetimes=WEEK, started=START - timedelta(days=1))
        assert (horizon := horizon_of(TICKET_SPEC, running_under(claim).look()))
        margin = TICKET_SPEC.restart.adopt_margin
        assert (horizon.reason, horizon.hard) == (HorizonReason.TOKEN_MAX_LIFETIME, START + timedelta(days=6) - margin)

    def test_with_an_unknown_horizon_the_ends_that_are_known_still_count(self) -> None:
        claim = written(max_lifetime_seconds=None)
        aged = replace(TICKET_SPEC, restart=RestartPolicy(max_age=timedelta(minutes=50)))
        next_step = step(running_under(claim), spec=aged)
        assert isinstance(next_step, Stop)
        assert "its horizon is not known" in next_step.why

    def test_where_positions_are_missing_a_commit_after_the_claim_counts(self) -> None:
        world = running_under(written(positions=None))
        world.offsets[3] = world.commits[3] = START - timedelta(seconds=1)
        assert not verified(world.look())
        world.offsets[4] = world.commits[4] = START + timedelta(seconds=1)
        assert verified(world.look())

    def test_a_claim_that_may_be_of_an_adopted_job_is_followed_by_nothing(self) -> None:
        """That job carries no tag, so not finding it proves nothing."""
        fields = json.loads(written_claim(DRAFT, "me"))
        del fields["adopted"]
        world = SimulatedYarn(now=START + timedelta(days=1), claims={1: read_claim(json.dumps(fields), 1, START)})
        world.files = {"gen-000001"}
        next_step = step(world)
        assert isinstance(next_step, Refuse)
        assert "doesn't tell its adopted" in next_step.why


class TestANewerVersion:
    CLAIM = written(version=5)

    def test_it_is_watched_and_told_of(self) -> None:
        next_step = step(running_under(self.CLAIM))
        assert isinstance(next_step, Settled)
        assert next_step.phase is Phase.RUNNING
        assert (
            "left alone: what was submitted is not known: its claim is of version 5, and this program" in next_step.why
        )
        assert (ends := horizon_of(TICKET_SPEC, running_under(self.CLAIM).look()))
        assert ends.reason is HorizonReason.UNKNOWN

    def test_a_dead_one_is_a_refusal_that_says_who_may_start_it(self) -> None:
        next_step = step(dead_under(self.CLAIM))
        assert isinstance(next_step, Refuse)
        assert "start it where it was claimed, or upgrade this program" in next_step.why


class TestAnotherVersion:
    @pytest.mark.parametrize("version", [2, 5])
    @pytest.mark.parametrize("mode", Mode)
    @pytest.mark.parametrize("wanted", DesiredState)
    @pytest.mark.parametrize("again", [0, 1])
    @pytest.mark.parametrize("days", [0, 6, 8])
    def test_it_is_never_acted_upon(
        self, version: int, mode: Mode, wanted: DesiredState, again: int, days: int
    ) -> None:
        claim = written(version=version)
        second = application(1, ApplicationState.RUNNING, number=2)
        worlds = [running_under(claim), dead_under(claim), running_under(claim), dead_under(claim)]
        worlds[2].applications.append((1, second))
        worlds[3].applications.clear()
        for world in worlds:
            world.now += timedelta(days=days)
            world.desired = Desired(wanted, again, "somebody")
            assert not isinstance(step(world, mode), Submit | Stop | Kill | GiveUp)

    @pytest.mark.parametrize("version", [1, 2, 5])
    def test_a_desired_state_of_it_is_no_wish_to_run(self, version: int) -> None:
        with pytest.raises(InvalidInput, match=f"it is of version {version}, and this program reads 3"):
            read_desired(json.dumps({"version": version, "state": "running"}), ORDER)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gen", "it is not JSON"),
        ("{}", "its version is None; allowed is a number from 1"),
        ('{"version": 3}', "it lacks the nonce"),
        ('{"version": 3, "nonce": 7}', "it lacks the nonce"),
    ],
)
def test_what_is_no_claim_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_claim(text, 1, START)


@pytest.mark.parametrize("text", ['{"state": "running"}', '{"version": 3, "state": "gone"}', '{"version": 3}', "{"])
def test_a_desired_state_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_desired(text, ORDER)


FLINK = FlinkStreamSpec("orders", TicketCredentials(), "/jobs/orders.jar", ("/flink/orders",))


def test_an_older_supervisor_leaves_a_claim_of_flink_alone() -> None:
    """It would drop the name of the engine, and submit the job as Spark's."""
    text = written_claim(replace(DRAFT, spec=FLINK), "me")
    assert json.loads(text)["version"] == 4
    assert json.loads(written_claim(DRAFT, "me"))["version"] == 3
    claim = read_claim(text, 1, START)
    assert (claim.spec, claim.doubt, claim.foreign) == (FLINK, "", False)


def test_a_spec_of_an_engine_that_is_not_known_here_is_no_spec() -> None:
    fields = json.loads(written_claim(DRAFT, "me"))
    fields["spec"]["engine"] = "storm"
    assert read_claim(json.dumps(fields), 1, START).doubt == (
        "what was submitted is not known: the claim's spec is for an engine that this program does not have: 'storm'"
    )


def test_the_same_fields_for_another_engine_are_another_job() -> None:
    spark = StreamSpec("orders", TicketCredentials(), "/jobs/orders.jar", ("/flink/orders",))
    assert change(fingerprint(FLINK), fingerprint(spark)) is Change.CHANGED
