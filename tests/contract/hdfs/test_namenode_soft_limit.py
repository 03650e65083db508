"""The NameNode's soft limit, which no setting changes: how it judges a lease that was not renewed for a minute."""

from __future__ import annotations

from airflow_kstream.clients.hdfs.leases import HolderAnswer
from airflow_kstream.model.leases.lease import HolderLiveness
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import LEAKED
from tests.live.streams import await_that
from tests.live.writers import Writer, pattern


def test_a_silent_holder_is_dead_after_a_minute_and_asking_closes_its_file(
    owner: LeaseSession, client: Writer, abandoned: tuple[str, str]
) -> None:
    """Asked about one of its files, the NameNode renews the lease on the other: see `HolderProbe`.

    The leak of a client that lives, which renews its lease for ever, outlives the limit. This takes what is left of a
    minute since the writer was killed and since the last failover.
    """
    one, other = abandoned
    told: list[HolderAnswer] = []

    def dead() -> bool:
        told.append(owner.web.ask_holder(one))
        return told[-1].liveness is HolderLiveness.DEAD

    await_that(dead, "the soft limit passes")
    leaked, renewed = owner.web.ask_holder(LEAKED), owner.web.ask_holder(other)
    assert told[-1].recovering
    assert (leaked.liveness, leaked.holder) == (HolderLiveness.RENEWING, client.holder)
    assert (renewed.liveness, [renewed.holder]) == (HolderLiveness.RENEWING, owner.rpc and owner.rpc.holders([other]))
    await_that(lambda: owner.web.ask_holder(one).closed, "the recovery that the question began closes the file")
    assert owner.base.hdfs.read_part(one, 0, 2000) == pattern(1000)
    assert owner.states.closed([other, LEAKED]) == [False, False]
