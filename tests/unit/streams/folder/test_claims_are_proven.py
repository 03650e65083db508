"""A claim is what stands in the folder, not what a server says to a rename.

The servers are simulated: a NameNode that loses replies and an HttpFS are not parts of the minicluster. What `clients`
makes of their answers is the business of tests/loopback/clients/test_webhdfs_renames.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT
from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, RestartAborted, Unavailable
from airflow_kstream.model.streams.contract import claim_file, fence_name, is_draft, stop_marker
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.supervise.clusters.write_once import require_exclusive_renames
from airflow_kstream.supervise.streams.folder.cleanup import forget_before
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.observe import observe
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, ONE_WEEK, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import TICKET_SPEC, WEEK

STREAM = StreamId("orders", CLUSTER.state_dir)


@dataclass
class HttpFs(SimHdfs):
    """It ignores renameoptions and says 200 and a boolean, which the client reports. Its filesystem may overwrite."""

    overwrites: bool = False
    asked_for: str = "/"

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if self.asked_for not in target:
            return super().rename_onto_nothing(source, target)
        if self.overwrites or target not in self.files:
            self.rename_over(source, target)
        raise InvalidInput("it ignores renameoptions, as HttpFS does", tried="rename", server="http://httpfs:14000")


@dataclass
class Flattering(SimHdfs):
    """It says yes to every rename, and keeps what stands there."""

    def rename_onto_nothing(self, source: str, target: str) -> None:
        with suppress(Conflict):
            super().rename_onto_nothing(source, target)


@dataclass
class Overwriting(SimHdfs):
    """It says yes to every rename, and overwrites what stands there."""

    def rename_onto_nothing(self, source: str, target: str) -> None:
        self.rename_over(source, target)


@dataclass
class LosesReplies(SimHdfs):
    """It renames, loses the reply, and the other NameNode answers the repeated request; then `reads` are lost, too."""

    said: type[KstreamError] = Conflict
    reads: int = 0

    def rename_onto_nothing(self, source: str, target: str) -> None:
        super().rename_onto_nothing(source, target)
        raise self.said("of the repeated request")

    def read(self, path: str, at_most: int = LONGEST_TEXT) -> str:
        if "/gen-" in path and self.reads:
            self.reads -= 1
            raise Unavailable("the reply was lost")
        return super().read(path, at_most)


@dataclass
class Interrupted(SimHdfs):
    """Something happens between a claimer's write and its rename."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if "/gen-" in target and self.meanwhile:
            self.meanwhile.pop()()
        super().rename_onto_nothing(source, target)


def claim(hdfs: SimHdfs, nonce: str, generation: int = 1) -> Claim:
    folder = StreamFolder(session_of(hdfs, SimYarn(hdfs.clock)), STREAM, acting=True)
    return folder.make_claim(ClaimDraft(generation, nonce, TICKET_SPEC, WEEK, {}, "test"))


def names(hdfs: SimHdfs) -> set[str]:
    return {file.name for file in hdfs.list(STREAM.folder)}


@pytest.mark.parametrize("overwrites", [False, True])
def test_through_httpfs_nobody_holds_a_claim(overwrites: bool) -> None:
    hdfs = HttpFs(SimClock(), overwrites=overwrites)
    for nonce in ("ours", "theirs"):
        with pytest.raises(InvalidInput, match="ignores renameoptions") as refused:
            claim(hdfs, nonce)
        assert refused.value.server == "http://httpfs:14000"
    assert names(hdfs) == set(), "what a server without exclusive renames was asked leaves neither claim nor fence"


@pytest.mark.parametrize("overwrites", [False, True])
def test_an_httpfs_beside_a_namenode_grants_no_claim_either(overwrites: bool) -> None:
    """The first address answered as a NameNode until the claim itself went to the second."""
    hdfs = HttpFs(SimClock(), overwrites=overwrites, asked_for="/gen-")
    for nonce in ("ours", "theirs"):
        with pytest.raises(InvalidInput, match="ignores renameoptions"):
            claim(hdfs, nonce)
    assert names(hdfs) == {claim_file(1)}, "nobody waits for a claim without its fence"


def test_of_two_that_the_server_granted_a_claim_only_one_holds_it() -> None:
    hdfs = Flattering(SimClock())
    assert claim(hdfs, "ours").nonce == "ours"
    with pytest.raises(Conflict, match="the server granted it, and yet another supervisor's claim stands there"):
        claim(hdfs, "theirs")
    assert names(hdfs) == {claim_file(1), fence_name(1, "ours")}


@pytest.mark.parametrize("said", [Conflict, NotFound, Unavailable])
def test_our_own_claim_that_looks_like_a_loss_is_ours(said: type[KstreamError]) -> None:
    hdfs = LosesReplies(SimClock(), said=said)
    assert claim(hdfs, "ours").nonce == "ours"
    assert names(hdfs) == {claim_file(1), fence_name(1, "ours")}


def test_a_claim_that_could_not_be_read_back_keeps_its_fence() -> None:
    """The claimer may know its nonce again; without the fence the generation would be lost for certain."""
    hdfs = LosesReplies(SimClock(), reads=1)
    with pytest.raises(Unavailable):
        claim(hdfs, "ours")
    assert names(hdfs) == {claim_file(1), fence_name(1, "ours")}


def test_a_namenode_passes_the_check_of_its_renames_and_nothing_is_left() -> None:
    hdfs = SimHdfs(SimClock())
    require_exclusive_renames(session_of(hdfs, SimYarn(hdfs.clock)).hdfs, "/kstream")
    assert hdfs.files == {}


@pytest.mark.parametrize("hdfs", [HttpFs(SimClock()), HttpFs(SimClock(), overwrites=True), Overwriting(SimClock())])
def test_a_server_that_grants_two_renames_onto_one_target_does_not_pass(hdfs: SimHdfs) -> None:
    with pytest.raises(InvalidInput, match=r"ignores renameoptions|granted two renames.*name the NameNodes") as refused:
        require_exclusive_renames(session_of(hdfs, SimYarn(hdfs.clock)).hdfs, "/kstream")
    assert refused.value.server
    assert hdfs.files == {}


def test_the_second_of_two_claimers_loses_and_leaves_nothing_behind() -> None:
    hdfs = Interrupted(SimClock())
    hdfs.meanwhile.append(lambda: claim(hdfs, "theirs"))
    with pytest.raises(Conflict, match="another supervisor has it"):
        claim(hdfs, "ours")
    assert names(hdfs) == {claim_file(1), fence_name(1, "theirs")}


def test_a_claimer_that_slept_through_many_generations_gets_no_forgotten_number() -> None:
    """A clean-up deletes old claims, so nothing stands in its way any more; the newest claim does."""
    hdfs = Interrupted(SimClock())
    folder = StreamFolder(session_of(hdfs, SimYarn(hdfs.clock)), STREAM, acting=True)

    def many_generations() -> None:
        for generation in range(1, 13):
            claim(hdfs, f"theirs{generation}", generation)
        forget_before(folder, 3, folder.names())

    hdfs.meanwhile.append(many_generations)
    with pytest.raises(Conflict):
        claim(hdfs, "ours")
    assert fence_name(1, "ours") not in names(hdfs)
    assert not any(is_draft(name) for name in names(hdfs))


@dataclass
class AnswersToReplace(SimHdfs):
    """It replaces a file or not, and then says this."""

    said: type[KstreamError] = Conflict
    does: bool = False

    def rename_over(self, source: str, target: str) -> None:
        if self.does:
            super().rename_over(source, target)
        raise self.said("nothing was renamed")


@pytest.mark.parametrize("said", [Conflict, NotFound, Unavailable])
def test_a_stop_marker_that_stands_is_written_whatever_the_server_said(said: type[KstreamError]) -> None:
    hdfs = AnswersToReplace(SimClock(), said=said, does=True)
    StreamFolder(session_of(hdfs, SimYarn(hdfs.clock)), STREAM, acting=True).ask_to_stop(1, "test")
    assert stop_marker(1) in names(hdfs)


@pytest.mark.parametrize("said", [Conflict, NotFound, Unavailable])
def test_a_stop_marker_that_does_not_stand_is_an_error(said: type[KstreamError]) -> None:
    hdfs = AnswersToReplace(SimClock(), said=said)
    with pytest.raises(said, match="nothing was renamed"):
        StreamFolder(session_of(hdfs, SimYarn(hdfs.clock)), STREAM, acting=True).ask_to_stop(1, "test")


def test_a_stop_that_another_supervisor_has_begun_needs_no_marker_of_ours() -> None:
    """HttpFS replaces nothing, and says false."""
    hdfs = AnswersToReplace(SimClock(), said=Conflict)
    hdfs.write(f"{STREAM.folder}/{stop_marker(1)}", "theirs")
    StreamFolder(session_of(hdfs, SimYarn(hdfs.clock)), STREAM, acting=True).ask_to_stop(1, "test")
    assert hdfs.read(f"{STREAM.folder}/{stop_marker(1)}") == "theirs"


@pytest.mark.parametrize("forced", [False, True])
def test_no_generation_is_stopped_for_a_successor_that_no_server_could_grant(life: Life, forced: bool) -> None:
    """The connection was edited to go through HttpFS while the stream ran. Even a forced restart needs a claim."""
    application = life.begin().job.application
    life.use(HttpFs(life.clock, life.hdfs.files))
    if forced:
        life.clock.ahead += ONE_WEEK - timedelta(minutes=30)
    else:
        life.request_restart()
    with pytest.raises(RestartAborted, match="ignores renameoptions, as HttpFS does; the current generation keeps"):
        life.reconcile()
    assert life.yarn.application(str(application)).alive


class Paged(SimHdfs):
    """Lists a long folder in pieces, as a NameNode does beyond dfs.ls.limit; the claim is made between two of them."""

    pieces = 0

    def list(self, path: str) -> tuple[FileStatus, ...]:
        files = super().list(path)
        if path.startswith(CLUSTER.state_dir) and any(file.name.startswith("gen-") for file in files):
            self.pieces += 1
            if self.pieces == 1:
                return tuple(file for file in files if not file.name.startswith("fence-"))
        return files


def test_a_claim_that_is_made_while_a_long_folder_is_listed_has_its_fence(life: Life) -> None:
    """Without it, the claim would count as given up, and the next generation be submitted beside its application."""
    hdfs = Paged(life.clock)
    life.use(hdfs)
    draft = ClaimDraft(1, "nonce", SPEC, WEEK, {}, "another supervisor")
    claim = life.run.folder.make_claim(draft)
    hdfs.pieces = 0
    observation = observe(life.run)
    assert observation.claim == claim
    assert claim.fence in observation.files
