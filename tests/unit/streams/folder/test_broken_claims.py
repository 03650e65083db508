"""A claim that is broken, damaged or newer affects its own stream alone: all others are read as before."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict, InvalidInput, Unavailable
from airflow_kstream.model.leases.open_file import FileHistory, FileState, OpenFile
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim, DesiredState, StreamId
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import Phase, Settled, Submit
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.keytabs import keytab_users
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.streams.checkpoint.ownership import own, require_available
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.registry import newest_claims, stream_names
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import declared_at_last, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.tokens.launch import launch_tokens
from tests.simulated.folders import order_path
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import TICKET_SPEC, WEEK

KEYTAB = KeytabCredentials("streamer@EXAMPLE.COM", "/streamer.keytab")


@dataclass
class Hdfs(SimHdfs):
    """An HDFS on which no checkpoint ever moves. `tokenless` is a NameNode that issues no token now."""

    tokenless: bool = False

    def checkpoint(self, path: str) -> Checkpoint:
        return Checkpoint(path, None, {}, {})

    def new_token(self, renewer: str) -> str:
        if self.tokenless:
            raise Unavailable("safe mode")
        return super().new_token(renewer)


@dataclass
class House:
    """A state_dir in which `orders` and `sales` run as they should."""

    clock: SimClock = field(default_factory=SimClock)
    hdfs: Hdfs = field(init=False)
    yarn: SimYarn = field(init=False)

    def __post_init__(self) -> None:
        self.hdfs, self.yarn = Hdfs(self.clock), SimYarn(self.clock)
        for name in ("orders", "sales"):
            self.start(spec_of(name))

    @property
    def session(self) -> ClusterSession:
        return session_of(self.hdfs, self.yarn)

    def start(self, spec: StreamSpec) -> None:
        stream = StreamId(spec.name, CLUSTER.state_dir)
        StreamFolder(self.session, stream, acting=True).make_claim(ClaimDraft(1, "nonce1", spec, WEEK, {}, "test"))
        self.yarn.start(frozenset(stream.tags(1)))

    def path(self, name: str, file: str = "gen-000001") -> str:
        return f"{StreamId(name, CLUSTER.state_dir).folder}/{file}"

    def write(self, name: str, text: str, file: str = "gen-000001") -> None:
        self.hdfs.write(self.path(name, file), text, overwrite=True)

    def change(self, name: str, **changed: Any) -> None:
        """Change fields of a claim; None removes one."""
        claim = json.loads(self.hdfs.read(self.path(name)))
        claim = {key: value for key, value in claim.items() if changed.get(key, "") is not None}
        self.write(name, json.dumps(claim | {key: value for key, value in changed.items() if value is not None}))

    def verdicts(self) -> dict[str, Verdict]:
        return dict(Watch(self.session).round(stream_names(self.session)))


def run_of(house: House, spec: StreamSpec) -> StreamRun:
    return StreamRun(house.session, spec, engine_of(spec))


def spec_of(name: str) -> StreamSpec:
    return replace(TICKET_SPEC, name=name, checkpoints=(f"/data/{name}/checkpoint",))


def break_json(house: House) -> None:
    house.write("sales", "no claim")


def add_a_field_to_the_spec(house: House) -> None:
    spec = json.loads(house.hdfs.read(house.path("sales")))["spec"]
    house.change("sales", spec={**spec, "engine": "flink"})


def take_the_credentials_out(house: House) -> None:
    spec = json.loads(house.hdfs.read(house.path("sales")))["spec"]
    del spec["credentials"]
    house.change("sales", spec=spec)


def make_newer(house: House) -> None:
    house.change("sales", version=5)


def take_the_lifetimes_out(house: House) -> None:
    house.change("sales", max_lifetime_seconds=None)
    house.hdfs.tokenless = True


TROUBLES = {
    break_json: "gen-000001 can't be understood: it is not JSON; nothing is done for this stream until somebody has",
    take_the_credentials_out: "is RUNNING; what was submitted is not known: the claim's spec lacks credentials",
    make_newer: "left alone: what was submitted is not known: its claim is of version 5, and this program",
    take_the_lifetimes_out: "is RUNNING; its claim doesn't tell its lifetimes",
    add_a_field_to_the_spec: "application_1_0002 is RUNNING",
}


@pytest.fixture(params=TROUBLES, ids=lambda trouble: trouble.__name__)
def trouble(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_its_own_stream_says_so_and_every_other_is_as_before(trouble: Any) -> None:
    house = House()
    before = house.verdicts()["orders"]
    trouble(house)
    verdicts = house.verdicts()
    assert TROUBLES[trouble] in verdicts["sales"].why
    assert not verdicts["sales"].calls_for_action
    assert verdicts["orders"].step == before.step
    assert verdicts["orders"].credentials.horizon is HorizonReason.TOKEN_MAX_LIFETIME


def test_its_horizon_is_never_none(trouble: Any) -> None:
    house = House()
    trouble(house)
    verdict = house.verdicts()["sales"]
    known = trouble is add_a_field_to_the_spec
    assert verdict.horizon_known is known
    assert verdict.credentials.horizon is not HorizonReason.NONE


def test_another_stream_is_still_submitted_beside_it(trouble: Any) -> None:
    house = House()
    trouble(house)
    supervisor = Reconciler(run_of(house, spec_of("third")), tell=lambda line: None)
    assert supervisor.plan()[1] == Submit(1, "its first generation")
    assert own(supervisor.subject, supervisor.plan()[0]) == ("/data/third/checkpoint",)


def test_its_checkpoint_is_still_kept_for_it(trouble: Any) -> None:
    house = House()
    own(owner := run_of(house, spec_of("sales")), observe(owner))
    trouble(house)
    third = run_of(house, replace(spec_of("sales"), name="third"))
    with pytest.raises(Conflict, match="/data/sales/checkpoint belongs to stream sales"):
        require_available(third, observe(third))


def test_another_stream_is_reconciled_and_stopped_beside_it(trouble: Any) -> None:
    house = House()
    trouble(house)
    spec = declared_at_last(house.session, StreamId("orders", CLUSTER.state_dir)).spec
    supervisor = Reconciler(run_of(house, spec), tell=lambda line: None)
    assert supervisor.plan()[1] == Settled(Phase.RUNNING, "application_1_0001 is RUNNING")
    set_desired(supervisor.subject, DesiredState.STOPPED, "test")
    house.yarn.end("application_1_0001")
    assert supervisor.plan()[1] == Settled(Phase.STOPPED, supervisor.plan()[1].why)


def test_files_of_another_stream_are_still_attributed(trouble: Any) -> None:
    house = House()
    trouble(house)
    of_orders = attributed(house, "/data/orders/checkpoint/offsets/.1.tmp")
    assert (of_orders.stream, of_orders.application) == ("orders", "application_1_0001")
    hidden = trouble in (break_json, take_the_credentials_out, make_newer)
    assert attributed(house, "/data/sales/checkpoint/x").stream == (None if hidden else "sales")


def attributed(house: House, path: str) -> Any:
    file = OpenFile(path, 1, "DFSClient_NONMAPREDUCE_1_30", "worker7")
    state = FileState(path, 1, "streamer", house.clock.now(), is_open=True, length=1)
    return Attributions(house.session).of(FileHistory.begin(file, state, house.clock.now()))


def test_the_check_of_keytabs_names_it_and_still_knows_the_others(trouble: Any) -> None:
    house = House()
    house.start(replace(spec_of("events"), credentials=KEYTAB))
    trouble(house)
    users, findings = keytab_users(house.session)
    assert [user.stream for user in users] == ["events"]
    doubtful = trouble in (break_json, take_the_credentials_out, make_newer)
    assert [finding.words[:43] for finding in findings] == ["could not determine whether sales uses it: "] * doubtful


def test_the_launch_tokens_of_another_stream_are_still_told(trouble: Any) -> None:
    house = House()
    trouble(house)
    launch = launch_tokens(house.session, "application_1_0001")
    assert (launch.stream, launch.lifetimes) == ("orders", WEEK)


def test_the_registry_lists_each_stream_with_its_claim_or_its_error() -> None:
    house = House()
    break_json(house)
    orders, sales = newest_claims(house.session)
    assert isinstance(orders.newest, Claim)
    assert isinstance(sales.newest, InvalidInput)
    assert stream_names(house.session) == ("orders", "sales")


def test_lifetimes_that_a_claim_lacks_are_the_clusters_and_count_from_the_start() -> None:
    house = House()
    house.change("sales", max_lifetime_seconds=None)
    found = house.verdicts()["sales"]
    assert found.credentials.horizon is HorizonReason.TOKEN_MAX_LIFETIME
    assert found.credentials.remaining is not None
    margin = TICKET_SPEC.restart.adopt_margin
    assert found.credentials.remaining == timedelta(days=7) - margin


def test_lifetimes_are_looked_up_once_and_not_at_each_round() -> None:
    house = House()
    house.change("sales", max_lifetime_seconds=None)
    watch = Watch(house.session)
    watch.round(["sales"])
    house.hdfs.tokenless = True
    assert watch.round(["sales"])["sales"].credentials.horizon is HorizonReason.TOKEN_MAX_LIFETIME


def test_a_broken_desired_state_is_its_own_streams_trouble() -> None:
    house = House()
    path = order_path(StreamId("sales", CLUSTER.state_dir))
    house.hdfs.write(path, "held, please")
    verdicts = house.verdicts()
    assert f"{path} of streamer can't be understood: it is not JSON" in verdicts["sales"].why
    assert isinstance(verdicts["orders"].step, Settled)
    assert isinstance(Reconciler(run_of(house, spec_of("third"))).plan()[1], Submit)


def test_a_request_to_a_stream_with_an_unknown_spec_is_refused_with_the_reason() -> None:
    house = House()
    make_newer(house)
    with pytest.raises(InvalidInput, match="its claim is of version 5"):
        declared_at_last(house.session, StreamId("sales", CLUSTER.state_dir))


def test_a_dead_application_under_a_newer_claim_keeps_its_files_without_successor() -> None:
    house = House()
    make_newer(house)
    house.yarn.end("application_1_0002", ApplicationState.FAILED)
    house.clock.ahead = timedelta(days=8)
    folder = house.hdfs.names(house.path("sales", "")[:-1])
    with pytest.raises(Conflict, match="upgrade this program"):
        Reconciler(run_of(house, spec_of("sales")), tell=lambda line: None).run()
    assert house.hdfs.names(house.path("sales", "")[:-1]) == folder
    assert len(house.yarn.applications(ALL_STREAMS_TAG)) == 2


def test_a_folder_that_was_copied_from_another_stream_is_not_taken_for_it() -> None:
    """Whoever stopped the copy by its claim would stop the original."""
    house = House()
    house.write("sales", house.hdfs.read(house.path("orders")))
    assert "the claim's spec is of stream orders" in house.verdicts()["sales"].why
    with pytest.raises(InvalidInput, match="the claim's spec is of stream orders"):
        declared_at_last(house.session, StreamId("sales", CLUSTER.state_dir))
